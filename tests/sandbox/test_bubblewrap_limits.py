"""Where the control groups of a box are made, with the folders of other machines than this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore_sandbox.bubblewrap.limits import ControlGroup, Limits, find_hierarchies, parse_size


def machine(folder: Path, *, mounts: str, own: str) -> dict[str, str]:
    """Write what the kernel says of a machine's control groups, and return the arguments that read it."""
    (folder / "mountinfo").write_text(mounts.format(at=folder))
    (folder / "cgroup").write_text(own)
    return {"mounts": str(folder / "mountinfo"), "own": str(folder / "cgroup")}


def group(path: Path, controllers: str | None = None) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.procs").touch()
    if controllers is not None:
        (path / "cgroup.subtree_control").write_text(controllers)
    return path


def test_of_version_2_a_group_beside_this_program_is_made(tmp_path: Path) -> None:
    above = group(tmp_path / "user.slice/app.slice", "cpu memory pids\n")
    group(above / "terminal.scope", "")
    asked = machine(
        tmp_path,
        mounts="31 23 0:28 / {at} rw,relatime - cgroup2 cgroup2 rw\n",
        own="0::/user.slice/app.slice/terminal.scope\n",
    )
    (found,) = find_hierarchies(**asked)
    assert (found.version, found.folder, found.controllers) == (2, above, {"memory", "pids", "cpu"})
    made = ControlGroup(Limits(1 << 30, 100, 1.5), [found])
    made.make()
    assert made.limited == {"memory", "pids", "cpu"}
    (folder,) = map(Path, made.folders)
    assert folder.parent == above
    written = {each.name: each.read_text() for each in folder.iterdir()}
    assert written == {
        "memory.max": str(1 << 30),
        "memory.swap.max": "0",
        "pids.max": "100",
        "cpu.max": "150000 100000",
    }
    (folder / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert made.oom_kills() == 2


def test_where_nothing_was_delegated_nothing_is_found(tmp_path: Path) -> None:
    group(tmp_path / "session.scope", "")
    asked = machine(tmp_path, mounts="31 23 0:28 / {at} rw - cgroup2 cgroup2 rw\n", own="0::/session.scope\n")
    assert find_hierarchies(**asked) == []
    assert find_hierarchies(mounts=str(tmp_path / "gone"), own=str(tmp_path / "gone")) == []
    nothing = ControlGroup(Limits(1 << 30, 100), [])
    nothing.make()
    assert (nothing.limited, nothing.folders, nothing.oom_kills()) == (frozenset(), [], 0)


def test_of_version_1_each_tree_has_a_group_below_this_programs_own(tmp_path: Path) -> None:
    memory, pids = group(tmp_path / "memory/docker/abc"), group(tmp_path / "pids")
    asked = machine(
        tmp_path,
        mounts="32 31 0:29 / {at}/memory rw - cgroup cgroup rw,memory\n33 31 0:30 / {at}/pids rw - cgroup cgroup rw,pids\n"
        "34 31 0:31 / {at}/systemd rw - cgroup cgroup rw,name=systemd\n",
        own="9:name=systemd:/\n8:pids:/\n4:memory:/docker/abc\n",
    )
    assert {each.folder: each.controllers for each in find_hierarchies(**asked)} == {memory: {"memory"}, pids: {"pids"}}


def test_a_mount_of_a_container_begins_at_its_own_group(tmp_path: Path) -> None:
    group(tmp_path / "memory")
    asked = machine(
        tmp_path,
        mounts="32 31 0:29 /docker/abc {at}/memory ro - cgroup cgroup rw,memory\n",
        own="4:memory:/docker/abc\n",
    )
    assert [each.folder for each in find_hierarchies(**asked)] == [tmp_path / "memory"]


def test_groups_of_programs_that_are_gone_are_removed(tmp_path: Path) -> None:
    above = group(tmp_path / "app.slice", "memory pids\n")
    for name in ("agentcore-4194304-0", "agentcore-1-0", "agentcore-other"):
        (above / name).mkdir()
    asked = machine(
        tmp_path, mounts="31 23 0:28 / {at} rw - cgroup2 cgroup2 rw\n", own="0::/app.slice/terminal.scope\n"
    )
    group(above / "terminal.scope")
    ControlGroup(Limits(1 << 30, 100), find_hierarchies(**asked)).make()
    # No process has the first one's number; the kernel counts to less.
    left = {each.name for each in above.glob("agentcore-*")}
    assert "agentcore-4194304-0" not in left
    assert {"agentcore-1-0", "agentcore-other"} <= left


def test_sizes_are_read_as_people_write_them() -> None:
    assert [parse_size("memory", text) for text in ("1g", "512m", "2GB", "1048576", "2048K")] == [
        1 << 30,
        512 << 20,
        2 << 30,
        1 << 20,
        2 << 20,
    ]
    for wrong in ("", "g", "1.5g", "-1g", "1023k", "many"):
        with pytest.raises(ValueError, match="memory="):
            parse_size("memory", wrong)


@pytest.mark.parametrize("together", [frozenset[str](), frozenset({"memory", "pids"})])
def test_what_no_group_limits_is_limited_for_each_process(together: frozenset[str]) -> None:
    line = Limits(1 << 30, 100).shell_line(together)  # pyright: ignore[reportArgumentType] names of controllers
    assert ("ulimit -d 1048576" in line, "ulimit -u 100" in line) == (not together, not together)
