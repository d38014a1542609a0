"""A workspace whose helper is a plain process of this machine, and calls of each kind to be broken off."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from anyio.abc import ByteStream

from agentcore.workspace.process_table import read_by_psutil
from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.workspace import BoxWorkspace


@asynccontextmanager
async def open_plain(folder: Path, *, env: Mapping[str, str] | None = None) -> AsyncGenerator[BoxWorkspace]:
    """Open the folder "project" below one of the test; what is kept aside is in "state"."""
    (folder / "project").mkdir(exist_ok=True)
    async with BoxWorkspace(PlainBox(folder / "project", env=env, state=folder / "state")) as workspace:
        yield workspace


def commands_below(folder: Path) -> list[int]:
    """Return the processes whose current folder is this one or below; a helper's own is "/"."""
    return [pid for pid in read_by_psutil() if Path(_current_folder(pid)).is_relative_to(folder)]


def _current_folder(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def left_over(folder: Path) -> list[Path]:
    """Return the temporary files that are left below a folder."""
    return sorted(folder.rglob("*agentcore-tmp*"))


TREE = "echo $$; setsid bash -c 'exec sleep 1000' & sleep 1000"
_SHELL = ["bash", "--norc", "--noprofile", "-i"]


async def run_a_tree(workspace: BoxWorkspace, _: Path) -> None:
    """Run a command that starts others, and does not end."""
    await workspace.run(TREE)


async def talk_to_a_shell(workspace: BoxWorkspace, _: Path) -> None:
    """Talk to a shell on a terminal, which runs something that does not end."""
    async with workspace.open_process(_SHELL, pty=True, env={"TERM": "dumb"}) as process:
        await process.send(b"setsid -f sleep 1000; sh -c 'echo go''ing; sleep 1000'\n")
        shown = b""
        while b"\ngoing" not in shown:
            shown += await process.receive()
        await process.interrupt()
        await process.resize(100, 40)
        await process.wait()


async def flood(workspace: BoxWorkspace, _: Path) -> None:
    """Read what never ends."""
    async with workspace.open_process("yes") as process:
        while True:
            await process.receive()


async def feed(workspace: BoxWorkspace, _: Path) -> None:
    """Write to what never reads."""
    async with workspace.open_process("exec sleep 1000") as process:
        await process.send(b"x" * 10_000_000)


async def read_again(workspace: BoxWorkspace, _: Path) -> None:
    """Read a file of 4 MB, again and again."""
    while True:
        await workspace.read("big")


async def write_again(workspace: BoxWorkspace, _: Path) -> None:
    """Write a file of 4 MB, again and again."""
    while True:
        await workspace.write("written", b"y" * BIG)


async def look_again(workspace: BoxWorkspace, _: Path) -> None:
    """Look at things, again and again."""
    while True:
        await workspace.list("tree")
        await workspace.stat("tree")
        await workspace.append("appended", b"z")
        await workspace.remove_private_folder(Path(await workspace.private_folder("aside")).name)


async def upload_again(workspace: BoxWorkspace, here: Path) -> None:
    """Upload a folder, again and again."""
    while True:
        await workspace.upload(here / "tree", "uploaded")


async def download_again(workspace: BoxWorkspace, here: Path) -> None:
    """Download a folder, again and again."""
    while True:
        await workspace.download("tree", here / "downloaded")


async def connect_again(workspace: BoxWorkspace, _: Path) -> None:
    """Connect to a port inside and talk there, again and again."""

    async def echo(stream: ByteStream) -> None:
        async for data in stream:
            await stream.send(data)

    async with workspace.listen(0, echo) as port:
        while True:
            async with workspace.connect(port) as stream:
                await stream.send(b"hello")
                assert await stream.receive() == b"hello"


BIG = 4_000_000
CALLS: Sequence[Callable[[BoxWorkspace, Path], Awaitable[None]]] = (
    run_a_tree,
    talk_to_a_shell,
    flood,
    feed,
    read_again,
    write_again,
    look_again,
    upload_again,
    download_again,
    connect_again,
)
"""Something of each kind, none of which ends by itself."""


@asynccontextmanager
async def open_stocked(folder: Path) -> AsyncGenerator[tuple[BoxWorkspace, Path]]:
    """Open a workspace with what the calls need in it; the folder is the one on this side."""
    here = folder / "here"
    (here / "tree" / "sub").mkdir(parents=True)
    for number in range(20):
        (here / "tree" / "sub" / f"{number}").write_bytes(b"t" * 10_000)
    async with open_plain(folder) as workspace:
        await workspace.upload(here / "tree", "tree")
        await workspace.write("big", b"b" * BIG)
        yield workspace, here
