"""What actions touch, and which of them may run at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.tools import Resource, conflicts

ROOT = "/home/me/project"


def file(path: str, mode: str = "write") -> Resource:
    return Resource.file(path, "write" if mode == "write" else "read", root=ROOT)


BROWSER, PRINTER = Resource.named("browser", "write"), Resource.named("printer", "write")


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (file("a.py", "read"), file("a.py", "read"), False),
        (file("a.py", "write"), file("a.py", "read"), True),
        # Names of which one begins with the other are different files.
        (file("src/a"), file("src/ab"), False),
        (file("src/a.py"), file("src/b.py"), False),
        # A folder has its files, and the workspace all of them, those outside of the project's folder too.
        (file("src"), file("src/deep/a.py", "read"), True),
        (Resource.workspace("write"), file("src/a.py", "read"), True),
        (Resource.workspace("read"), file("src/a.py", "write"), True),
        (Resource.workspace("read"), file("src/a.py", "read"), False),
        (Resource.workspace("write"), file("/etc/hosts", "read"), True),
        # What is named is apart from the workspace and from other names.
        (BROWSER, BROWSER, True),
        (BROWSER, PRINTER, False),
        (BROWSER, Resource.workspace("write"), False),
    ],
)
def test_what_touches_the_same_meets_where_one_of_them_writes(one: Resource, other: Resource, meet: bool) -> None:
    assert conflicts([one], [other]) == conflicts([other], [one]) == meet
    assert not conflicts([], [one])


@pytest.mark.parametrize(
    "other", ["./a.py", "src/../a.py", f"{ROOT}/a.py", f"//{ROOT}//a.py", "a.py/", f"{ROOT}/x/./../a.py"]
)
def test_one_file_written_in_two_ways_is_one_resource(other: str) -> None:
    assert file(other) == file("a.py")


def test_a_path_can_not_climb_above_the_top_and_its_root_is_absolute() -> None:
    assert file("../../../../../etc").path == ("workspace", "etc")
    with pytest.raises(ValueError, match="absolute"):
        Resource.file("a", "read", root="project")


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
