"""Limits of a bubblewrap box: for all that runs in it together by a control group where one may be made here, else for each process.

Control groups of version 1 need root; those of version 2 a folder that was delegated to this user, as systemd does it for whoever has
logged in.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, Literal, NamedTuple, final

Controller = Literal["memory", "pids", "cpu"]

MAX_FILES: Final = 16_384
_TRIES: Final = 100
_PAUSE: Final = 0.01
_PERIOD: Final = 100_000
_PREFIX: Final = "agentcore-"
_NUMBERS: Final = count()
_SIZE: Final = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def parse_size(name: str, text: str) -> int:
    """Return the number of bytes that "512m" or "2g" is.

    Raises:
        ValueError: It is not a size.
    """
    found = _SIZE.fullmatch(text.strip())
    size = int(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " ") if found else 0
    if size < 1 << 20:
        raise ValueError(f"{name}={text!r} is not a size of at least 1 MB. Write it as '512m' or '2g'.")
    return size


class Limits(NamedTuple):
    """The most that a box may use."""

    memory: int
    """Bytes, with what lies in /tmp and in the home inside."""
    pids: int
    cpus: float | None = None

    def shell_line(self, together: frozenset[Controller]) -> str:
        """Return the limits of each process, as a line for sh that runs inside before anything else does.

        Args:
            together: What a control group limits for all of them.
        """
        line = f"ulimit -c 0; ulimit -n {MAX_FILES} 2>/dev/null; "
        if "memory" not in together:
            # Not the address space (-v), of which V8, Go and Java reserve more than they ever use.
            line += f"ulimit -d {self.memory // 1024}; "
        if "pids" not in together:
            # dash knows it as -p, and leaves at an option that it does not know.
            line += (
                f"if (ulimit -u {self.pids}) 2>/dev/null; then ulimit -u {self.pids}; else ulimit -p {self.pids}; fi; "
            )
        return line


class Hierarchy(NamedTuple):
    """A tree of control groups that a box's group may be made in."""

    version: Literal[1, 2]
    controllers: frozenset[Controller]
    folder: Path
    """The group below which one may be made."""


@final
class ControlGroup:
    """The control groups of one box, one for each hierarchy that limits something."""

    def __init__(self, limits: Limits, hierarchies: list[Hierarchy]) -> None:
        self._limits = limits
        self._hierarchies = hierarchies
        self._name = f"{_PREFIX}{os.getpid()}-{next(_NUMBERS)}"
        self.limited: frozenset[Controller] = frozenset()
        """The controllers that could be set."""
        self._folders: dict[Path, Hierarchy] = {}

    @property
    def folders(self) -> list[str]:
        """The groups that the box's first process has to join, as folders."""
        return [str(folder) for folder in self._folders]

    def make(self) -> None:
        """Make the groups, as far as that is allowed. Blocks, and raises nothing: `limited` has what came of it."""
        limited: set[Controller] = set()
        for hierarchy in self._hierarchies:
            _remove_left_behind(hierarchy.folder)
            folder = hierarchy.folder / self._name
            try:
                folder.mkdir()
            except OSError:
                continue
            self._folders[folder] = hierarchy
            limited.update(each for each in hierarchy.controllers if self._limit(folder, hierarchy, each))
            if not limited & hierarchy.controllers:
                del self._folders[folder]
                _remove(folder)
        self.limited = frozenset(limited)

    def _limit(self, folder: Path, hierarchy: Hierarchy, controller: Controller) -> bool:
        one = hierarchy.version == 1
        match controller:
            case "memory":
                settings = {"memory.limit_in_bytes" if one else "memory.max": str(self._limits.memory)}
                swap = {"memory.memsw.limit_in_bytes": str(self._limits.memory)} if one else {"memory.swap.max": "0"}
                if not _write(folder, settings):
                    return False
                _write(folder, swap)  # a kernel without swap has no such file
                return True
            case "pids":
                return _write(folder, {"pids.max": str(self._limits.pids)})
            case "cpu":
                if self._limits.cpus is None:
                    return False
                quota = str(int(self._limits.cpus * _PERIOD))
                if one:
                    return _write(folder, {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": quota})
                return _write(folder, {"cpu.max": f"{quota} {_PERIOD}"})

    def oom_kills(self) -> int:
        """Return how often the kernel ended a process because the memory was used up. Blocks."""
        for folder, hierarchy in self._folders.items():
            if "memory" in hierarchy.controllers:
                with suppress(OSError):
                    content = (
                        folder / ("memory.oom_control" if hierarchy.version == 1 else "memory.events")
                    ).read_text()
                    return sum(int(line.split()[1]) for line in content.splitlines() if line.startswith("oom_kill "))
        return 0

    def remove(self) -> None:
        """Remove the groups; what still runs keeps its own. Blocks."""
        for folder in list(self._folders):
            # The kernel takes a moment to let go of the last process.
            if any(_remove(folder) or time.sleep(_PAUSE) for _ in range(_TRIES)):
                del self._folders[folder]


def find_hierarchies(mounts: str = "/proc/self/mountinfo", own: str = "/proc/self/cgroup") -> list[Hierarchy]:
    """Return the trees in which this program may make groups that limit memory, processes or processors. Blocks."""
    try:
        groups = dict(_own_groups(Path(own).read_text()))
        mounted = list(_mounted(Path(mounts).read_text()))
    except OSError:
        return []
    found: list[Hierarchy] = []
    for version, names, root, place in mounted:
        group = groups.get("" if version == 2 else next((name for name in groups if name and name in names), "?"))
        if group is None:
            continue
        # In a container the mount may begin at its own group.
        inner = group.removeprefix(root.rstrip("/"))
        below = Path(place) / inner.lstrip("/")
        here = below if below.is_dir() else Path(place)
        if version == 1:
            controllers, folders = names, [here]
        else:
            # Beside this program, as a group with processes in it may have none below that limits anything.
            controllers, folders = None, [here.parent if here != Path(place) else here, here]
        for folder in folders:
            limits = _controllers(controllers if controllers is not None else _enabled(folder))
            # Whoever moves a process must be allowed to do so in the group above both.
            if limits and os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK):
                found.append(Hierarchy(version, limits, folder))
                break
    return found


def _own_groups(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _mounted(text: str) -> Iterator[tuple[Literal[1, 2], frozenset[str], str, str]]:
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        root, place = (_OCTAL.sub(lambda found: chr(int(found[1], 8)), each) for each in before.split()[3:5])
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            yield 2, frozenset(), root, place
        elif kind == "cgroup":
            yield 1, frozenset(options.split(",")), root, place


def _enabled(folder: Path) -> frozenset[str]:
    try:
        return frozenset((folder / "cgroup.subtree_control").read_text().split())
    except OSError:
        return frozenset()


def _controllers(names: frozenset[str]) -> frozenset[Controller]:
    every: tuple[Controller, ...] = ("memory", "pids", "cpu")
    return frozenset(each for each in every if each in names)


def _write(folder: Path, settings: dict[str, str]) -> bool:
    try:
        for name, value in settings.items():
            (folder / name).write_text(value)
    except OSError:
        return False
    return True


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_left_behind(folder: Path) -> None:
    # By a program that was killed. A group that has processes cannot be removed.
    with suppress(OSError):
        for each in folder.glob(f"{_PREFIX}*-*"):
            owner = each.name.removeprefix(_PREFIX).partition("-")[0]
            if owner.isdigit() and not Path("/proc", owner).exists():
                _remove(each)


def can_limit_processes_alone() -> bool:
    """Return whether `ulimit -u` inside counts what runs inside: since Linux 5.14, and never for root."""
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    return os.geteuid() != 0 and numbers is not None and (int(numbers[1]), int(numbers[2])) >= (5, 14)
