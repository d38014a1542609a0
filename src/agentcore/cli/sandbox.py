"""`--sandbox`: the workspace that the command line makes for it; and `agentcore sandbox`, for the boxes of the Docker engine."""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from collections.abc import Callable
from contextlib import contextmanager
from importlib.util import find_spec
from os import get_terminal_size
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from agentcore.cli.console import DIM, make_console, print_line, print_text, write_json
from agentcore.cli.failures import UsageError, with_sandbox_flags
from agentcore.cli.text import age
from agentcore.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Generator

    from agentcore.workspace import Workspace
    from agentcore_sandbox.box import Progress
    from agentcore_sandbox.docker.engine import OpenExec

Kind = Literal["docker", "bubblewrap"]

DEFAULT_IMAGE: Final = "python:3.12"
"""It has bash, git and Python."""
_PULL_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.05
_HEADINGS: Final = f"{'box':<16}  {'state':<8}  created  conversation, folder"


def sandbox_maker(
    kind: Kind | None, network: str | None, image: str | None, *, labels: dict[str, str] | None = None
) -> Callable[[str], Workspace] | None:
    """Return the function that makes the sandbox of a folder; None where none is asked for.

    Args:
        kind: The value of --sandbox.
        network: The value of --network.
        image: The value of --sandbox-image.
        labels: By which the box is found again.

    Raises:
        UsageError: They do not go together.
        MissingExtra: The parts for it are not installed.
    """
    if kind is None:
        if network is not None:
            raise UsageError("--network is about a sandbox. Add --sandbox docker or --sandbox bubblewrap.")
        if image is not None:
            raise UsageError("--sandbox-image is about a sandbox. Add --sandbox docker.")
        return None
    policy = _read_network(network or "none")
    if kind == "bubblewrap":
        if image is not None:
            raise UsageError("--sandbox-image is about Docker; bubblewrap shows the programs of this machine.")
        from agentcore_sandbox.bubblewrap import workspace as bubblewrap  # noqa: PLC0415 not needed by other commands

        return lambda folder: bubblewrap.BubblewrapWorkspace(folder, network=policy)
    if find_spec("aiodocker") is None:
        raise MissingExtra("--sandbox docker", "docker")
    from agentcore_sandbox.docker import workspace as docker  # noqa: PLC0415 the same

    made_of = image or DEFAULT_IMAGE

    def make(folder: str) -> Workspace:
        progress = PullProgress(made_of)
        return docker.DockerWorkspace(made_of, mount=folder, network=policy, labels=labels, on_progress=progress.show)

    return make


class PullProgress:
    """Prints how far pulling an image has come to standard error: at the start, then now and then."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._next = 0.0

    async def show(self, progress: Progress) -> None:
        """Take in what a box that starts reports."""
        if progress.phase != "pull" or (now := anyio.current_time()) < self._next:
            return
        first, self._next = self._next == 0.0, now + _PULL_SECONDS
        how_far = ""
        if progress.total and progress.done is not None and not first:
            how_far = f": {progress.done // 1_000_000:,} of {progress.total // 1_000_000:,} MB so far"
        print_line(make_console(stderr=True), f"pulling the image {self._image}{how_far} ...", DIM)


def make_sandbox(maker: Callable[[str], Workspace], folder: str) -> Workspace:
    """Make the sandbox of a folder.

    Raises:
        UsageError: It cannot be made of this folder, or of that image.
    """
    try:
        return maker(folder)
    except (ValueError, TypeError) as error:
        raise UsageError(with_sandbox_flags(str(error))) from None


def _read_network(given: str) -> Any:
    if given in ("none", "full"):
        return given
    if not given.startswith("allow:"):
        raise UsageError(f"--network is none, full or allow:HOST,HOST (as allow:example.org), not {given!r}.")
    from agentcore_sandbox.network.policy import Allow  # noqa: PLC0415 not needed by other commands

    try:
        return Allow(*(host.strip() for host in given.removeprefix("allow:").split(",") if host.strip()))
    except ValueError as error:
        raise UsageError(f"--network: {error}") from None


async def list_sandboxes(*, json: bool) -> int:
    """Print the boxes that the engine has and return the exit code."""
    from agentcore_sandbox.docker import resources  # noqa: PLC0415 not needed by other commands

    boxes = await resources.list_boxes()
    console = make_console()
    if boxes and not json:
        print_line(console, _HEADINGS, DIM)
    for box in boxes:
        if json:
            write_json(box.model_dump(mode="json"))
            continue
        state = "in use" if box.in_use else box.state
        where = box.mount or "no folder of this machine"
        print_line(console, f"{box.id}  {state:<8}  {age(box.created):<7}  {box.conversation or '-'}, {where}")
    if not boxes and not json:
        print_line(console, "No boxes at this engine.", DIM)
    return 0


async def prune_sandboxes(*, everything: bool) -> int:
    """Remove boxes that are not in use and return the exit code."""
    from agentcore_sandbox.docker import resources  # noqa: PLC0415 the same

    removed = await resources.prune(expired_only=not everything)
    console = make_console()
    for box in removed:
        print_line(console, f"removed {box.id}")
    if not removed:
        hint = "" if everything else " Those that have not expired yet: agentcore sandbox prune --all"
        print_line(console, f"Nothing to remove.{hint}", DIM)
    return 0


async def show_sandbox_log(box: str, *, lines: int) -> int:
    """Print what a box wrote about itself and return the exit code."""
    from agentcore_sandbox.docker import resources  # noqa: PLC0415 the same

    print_text(make_console(), await resources.read_logs(box, lines=lines))
    return 0


async def open_sandbox_shell(box: str) -> int:
    """Connect this terminal to a shell in a box and return the exit code.

    Raises:
        UsageError: There is no terminal.
    """
    from agentcore_sandbox.docker import resources  # noqa: PLC0415 the same

    if not sys.stdin.isatty():
        raise UsageError("A shell needs a terminal.")
    async with resources.open_shell(box, size=get_terminal_size()) as opened:
        with _raw_terminal():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_type_on, opened.stream)
                tasks.start_soon(_follow_size, opened)
                await _show(opened.stream)
                tasks.cancel_scope.cancel()
        return await _exit_code(opened)


async def _exit_code(opened: OpenExec) -> int:
    """Return the code of what has closed its terminal; the engine learns of its end a little later."""
    with anyio.move_on_after(_LOOK_SECONDS):
        while (code := await opened.exit_code()) is None:  # noqa: ASYNC110 the engine has no event of it
            await anyio.sleep(_RETRY_SECONDS)
        return code
    return 0


async def _follow_size(opened: OpenExec) -> None:
    with anyio.open_signal_receiver(signal.SIGWINCH) as signals:
        async for _ in signals:
            await opened.resize(*get_terminal_size())


async def _show(stream: Any) -> None:
    try:
        while True:
            sys.stdout.buffer.write(await stream.receive())
            sys.stdout.buffer.flush()
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


async def _type_on(stream: Any) -> None:
    while True:
        await anyio.wait_readable(0)
        if not (typed := os.read(0, 4096)):
            return
        await stream.send(typed)


@contextmanager
def _raw_terminal() -> Generator[None]:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
