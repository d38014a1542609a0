"""What actions touch, and which of them may run at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.tools import Resource, conflicts

ROOT = "/home/me/project"


def file(path: str, mode: str = "write") -> Resource:
    return Resource.file(path, "write" if mode == "write" else "read", root=ROOT)


def test_two_that_read_the_same_run_at_once() -> None:
    assert not conflicts([file("a.py", "read")], [file("a.py", "read")])


def test_one_that_writes_what_the_other_reads_waits() -> None:
    assert conflicts([file("a.py", "write")], [file("a.py", "read")])
    assert conflicts([file("a.py", "read")], [file("a.py", "write")])


def test_different_files_do_not_meet_even_where_one_name_begins_with_the_other() -> None:
    assert not conflicts([file("src/a")], [file("src/ab")])
    assert not conflicts([file("src/a.py")], [file("src/b.py")])


def test_a_folder_has_its_files_and_the_workspace_has_all_of_them() -> None:
    assert conflicts([file("src")], [file("src/deep/a.py", "read")])
    assert conflicts([Resource.workspace("write")], [file("src/a.py", "read")])
    assert conflicts([Resource.workspace("read")], [file("src/a.py", "write")])
    assert not conflicts([Resource.workspace("read")], [file("src/a.py", "read")])


def test_a_command_can_reach_files_outside_of_the_projects_folder_too() -> None:
    assert conflicts([Resource.workspace("write")], [file("/etc/hosts", "read")])


@pytest.mark.parametrize(
    "other", ["./a.py", "src/../a.py", f"{ROOT}/a.py", f"//{ROOT}//a.py", "a.py/", f"{ROOT}/x/./../a.py"]
)
def test_one_file_written_in_two_ways_is_one_resource(other: str) -> None:
    assert file(other) == file("a.py")


def test_a_path_can_not_climb_above_the_top() -> None:
    assert file("../../../../../etc").path == ("workspace", "etc")


def test_a_root_that_is_not_absolute_is_refused() -> None:
    with pytest.raises(ValueError, match="absolute"):
        Resource.file("a", "read", root="project")


def test_what_is_named_is_apart_from_the_workspace_and_from_other_names() -> None:
    browser = Resource.named("browser", "write")
    assert conflicts([browser], [browser])
    assert not conflicts([browser], [Resource.named("printer", "write")])
    assert not conflicts([browser], [Resource.workspace("write")])


def test_what_touches_nothing_conflicts_with_nothing() -> None:
    assert not conflicts([], [Resource.workspace("write")])
    assert not conflicts([], [])


resources = st.lists(
    st.builds(
        Resource,
        path=st.lists(st.sampled_from(["workspace", "a", "b"]), min_size=1, max_size=3).map(tuple),
        mode=st.sampled_from(["read", "write"]),
    ),
    max_size=4,
)


@given(resources, resources)
def test_conflicts_go_both_ways_and_need_a_writer(one: list[Resource], other: list[Resource]) -> None:
    assert conflicts(one, other) == conflicts(other, one)
    if all(resource.mode == "read" for resource in one + other):
        assert not conflicts(one, other)
