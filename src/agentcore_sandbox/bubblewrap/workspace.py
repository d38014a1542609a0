"""`BubblewrapWorkspace`: a folder of this machine, with commands that reach nothing else of it.

Above: tools, which see a `Workspace`. Below: `BoxWorkspace` and `BubblewrapBox`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Final, cast, final

from pydantic import JsonValue

from agentcore._arguments import FOLDER, TEXT, TEXT_BY_NAME, WHOLE_NUMBER, Argument, checked, optional
from agentcore.errors import WorkspaceError
from agentcore_sandbox.bootstrap import BOOT_COMMAND
from agentcore_sandbox.box import ReportProgress
from agentcore_sandbox.bubblewrap.box import BubblewrapBox, BubblewrapOptions
from agentcore_sandbox.bubblewrap.limits import Limits, parse_size
from agentcore_sandbox.network.policy import NetworkPolicy, check_policy, record_policy
from agentcore_sandbox.workspace import OUT_OF_MEMORY, BoxWorkspace

_MEMORY: Final = "2g"
_PIDS: Final = 512
_MOST_TMP: Final = 1 << 30
_FEWEST_PIDS: Final = 16
_LEAST_CPUS: Final = 0.01


def _are_paths(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return all(isinstance(each, str | PathLike) for each in cast("Sequence[object]", value))


def _is_cpus(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= _LEAST_CPUS


@final
class BubblewrapWorkspace(BoxWorkspace):
    """A folder of this machine in namespaces of its own, made by bubblewrap for any user, without a daemon or an image.

    Commands see the folder under its own path, the system's programs (/usr, read-only) and an empty /tmp and home in memory: no other
    file, process or network of this machine. They run without any capability, behind a filter of system calls. What they leave running
    ends with the workspace, or with this program, also if it is killed. /tmp and the home inside are empty again after the helper died.

    Everything in the folder may be changed, `.git` included: look at `.git/config` and `.git/hooks` before you run git there yourself
    after a task that you do not trust. A socket that another program has in the folder can be connected to.

    Needs Linux on x86_64 or aarch64 and bubblewrap 0.8 (`apt install bubblewrap`). Memory, processes and processors are limited for all
    commands together where a control group can be made (as root, or where systemd delegates one), else the first two for each process or
    user; what cannot be limited stands in the record.

    Args:
        path: The folder. Not the home, nor a folder above it or of the system.
        network: "none"; `Allow("example.org", ...)`, through a proxy; or "full" for the machine's own network, without any limit.
        env: Variables that all commands get. They get nothing of this program's environment.
        read_only: Further folders and files that commands can read, under their own paths.
        tmp_size: The most that /tmp and the home inside may hold together, which is a part of the memory: at most 3/4 of it. By default
            half of it, up to 1 GB.
        memory: The most memory.
        pids: The most processes and threads.
        cpus: The most processors, as in 1.5; by default all.
        on_progress: Is awaited with each `Progress` while the box starts.

    Raises:
        ValueError: A size or a number is out of range.
        TypeError: An argument is not what it has to be.
    """

    @checked(
        path=FOLDER,
        env=optional(TEXT_BY_NAME),
        read_only=Argument("a sequence of paths", _are_paths),
        tmp_size=optional(TEXT),
        memory=TEXT,
        pids=WHOLE_NUMBER,
        cpus=optional(Argument(f"a number of processors of at least {_LEAST_CPUS}", _is_cpus)),
    )
    def __init__(
        self,
        path: str | PathLike[str] = ".",
        *,
        network: NetworkPolicy = "none",
        env: Mapping[str, str] | None = None,
        read_only: Sequence[str | PathLike[str]] = (),
        tmp_size: str | None = None,
        memory: str = _MEMORY,
        pids: int = _PIDS,
        cpus: float | None = None,
        on_progress: ReportProgress | None = None,
    ) -> None:
        policy = check_policy(network)
        if pids < _FEWEST_PIDS:
            raise ValueError(
                f"pids={pids} is too few: bubblewrap, the helper and a shell need some. Pass at least {_FEWEST_PIDS}."
            )
        memory_bytes = parse_size("memory", memory)
        tmp_bytes = min(_MOST_TMP, memory_bytes // 2) if tmp_size is None else parse_size("tmp_size", tmp_size)
        if tmp_bytes * 4 > memory_bytes * 3:
            raise ValueError(
                f"tmp_size={tmp_size!r} is more than 3/4 of memory={memory!r}, which it is a part of. Make it smaller."
            )
        self._path = os.fspath(path)
        shown = [os.fspath(each) for each in read_only]
        options = BubblewrapOptions(
            path=self._path,
            network=policy,
            env=dict(env or {}),
            read_only=shown,
            tmp_bytes=tmp_bytes,
            limits=Limits(memory_bytes, pids, cpus),
        )
        params: dict[str, JsonValue] = {"network": record_policy(policy), "memory": memory, "pids": pids}
        if tmp_size is not None:
            params["tmp_size"] = tmp_size
        if cpus is not None:
            params["cpus"] = cpus
        if shown:
            params["read_only"] = list[JsonValue](shown)
        if env:
            params["env"] = list[JsonValue](env)
        self._bubblewrap = BubblewrapBox(options, params, BOOT_COMMAND)
        super().__init__(self._bubblewrap, network=policy, on_progress=on_progress)

    def __repr__(self) -> str:
        return f"BubblewrapWorkspace({self._path!r})"

    async def explain_kill(self) -> str | None:
        """Return a sentence where the box's memory was used up since the last call; None where no control group could be made."""
        # Inside there is no /sys to read it from.
        return OUT_OF_MEMORY if await self._bubblewrap.had_oom() else None


def restore(
    *,
    path: str,
    network: JsonValue = "none",
    memory: str = _MEMORY,
    pids: int = _PIDS,
    tmp_size: str | None = None,
    cpus: float | None = None,
    read_only: Sequence[str] = (),
    env: Sequence[str] = (),
) -> BubblewrapWorkspace:
    """Make a recorded workspace again, if it is not looser than the default: a log may come from anywhere.

    Raises:
        WorkspaceError: It was looser, or had variables, whose values are not recorded.
    """
    if env:
        raise WorkspaceError(f"the values of its variables ({', '.join(env)}) are not recorded; the folder was {path}")
    looser = [
        *(["the network"] if network != "none" else []),
        *([f"{', '.join(read_only)} to read"] if read_only else []),
        *(["more memory"] if parse_size("memory", memory) > parse_size("memory", _MEMORY) else []),
        *(["a larger /tmp"] if tmp_size is not None and parse_size("tmp_size", tmp_size) > _MOST_TMP else []),
        *(["more processes"] if pids > _PIDS else []),
    ]
    if looser:
        raise WorkspaceError(
            f"the log gives it {' and '.join(looser)}, which only a program may. Pass workspace=BubblewrapWorkspace({path!r}, ...) with "
            "what it is to have"
        )
    return BubblewrapWorkspace(path, memory=memory, pids=pids, tmp_size=tmp_size, cpus=cpus)
