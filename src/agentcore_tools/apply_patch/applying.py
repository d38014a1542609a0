"""Making a patch's changes: all of them are found first, and then all are written, or none stays."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, final

import anyio
from anyio.lowlevel import checkpoint

from agentcore._value import Value
from agentcore.errors import PathError, ToolError, WorkspaceError
from agentcore_tools.apply_patch.grammar import AddFile, DeleteFile, FilePatch, UpdateFile, paths_of
from agentcore_tools.apply_patch.matching import Misfit, changes_of, refuse_other
from agentcore_tools.files.change import unified_diff
from agentcore_tools.files.files import Files, decode_text, worked
from agentcore_tools.files.text import Change, NotText, Text, encoded

_RESTORE_SECONDS: Final = 30


class PatchedFile(Value):
    """The outcome for one file."""

    path: str
    """The absolute path; of a file that was moved where it was."""
    outcome: Literal["created", "changed", "moved", "removed"]
    moved_to: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """The planned outcome for one file."""

    file: PatchedFile
    before: bytes | None
    """None where there is no such file."""
    after: bytes | None
    """None where there is to be none."""
    diff: str
    note: str = ""
    """A line for the model about an encoding that was guessed."""


async def plan(files: Files, patches: Sequence[FilePatch]) -> list[Planned]:
    """Find out what is to become of each file, and write nothing. An error lists all parts that can't be applied."""
    await _refuse_twice(files, paths_of(patches))
    planned: list[Planned] = []
    problems: list[str] = []
    for patch in patches:
        try:
            planned.append(await _plan(files, patch))
        except Misfit as problem:
            problems.append(f"{patch.path}:\n{problem}")
        except (ToolError, PathError) as problem:
            problems.append(f"{patch.path}: {problem}")
    if problems:
        rest = " The other parts of it would fit." if planned else ""
        raise ToolError(f"The patch was not applied, and nothing was changed.{rest}\n" + "\n".join(problems))
    return planned


async def _refuse_twice(files: Files, paths: Sequence[str]) -> None:
    """Refuse two names of one file: each would be changed as if the other were not."""
    if len(paths) == 1:
        return
    names: dict[str, str] = {}
    for path, real in zip(paths, await files.followed(map(files.workspace.resolve, paths)), strict=True):
        if real in names:
            other = "" if path == names[real] else f" and {path!r}, which is the same file"
            raise ToolError(
                f"The patch was not applied, and nothing was changed: it has {names[real]!r}{other or ' twice'}. Put all changes "
                "of a file under one header, in their order."
            )
        names[real] = path


async def _plan(files: Files, patch: FilePatch) -> Planned:
    path = await files.to_write(patch.path)
    match patch:
        case AddFile():
            await _refuse_if_there(files, path, "To change it, use '*** Update File'.")
            files.refuse_masks(patch.text, "", path)
            change = Change(0, 0, patch.text)
            diff = unified_diff("", [change], path, created=True)
            return Planned(PatchedFile(path=path, outcome="created"), None, encoded(patch.text), diff)
        case DeleteFile():
            before = await files.to_change(path)
            if patch.lines is not None:
                refuse_other(decode_text(before, path), patch.lines)
            return Planned(PatchedFile(path=path, outcome="removed"), before, None, _removed(before, path))
        case UpdateFile():
            return await _plan_update(files, patch, path)


async def _plan_update(files: Files, patch: UpdateFile, path: str) -> Planned:
    move_to = None
    if patch.move_to is not None:
        move_to = await files.to_write(patch.move_to)
        if move_to != path:
            await _refuse_if_there(files, move_to, "Choose another name, or delete it first.")
    before = await files.to_change(path)
    if not patch.hunks:
        after, diff, note = before, unified_diff("", [], path, to=move_to), ""
    else:

        def changed() -> tuple[bytes, str, str]:
            old = decode_text(before, path)
            changes = changes_of(old, patch.hunks)
            return (
                files.replaced(old, changes, path).encode(),
                unified_diff(old.normal, changes, path, to=move_to),
                old.note,
            )

        after, diff, note = await worked(before, changed)
    if move_to is None or move_to == path:
        return Planned(PatchedFile(path=path, outcome="changed"), before, after, diff, note)
    return Planned(PatchedFile(path=path, outcome="moved", moved_to=move_to), before, after, diff, note)


async def _refuse_if_there(files: Files, path: str, advice: str) -> None:
    if await files.workspace.stat(path) is not None:
        raise ToolError(f"{path!r} exists already. {advice}")


def _removed(before: bytes, path: str) -> str:
    try:
        normal = Text.read(before).normal
    except NotText:
        return f"Binary file {path} removed\n"
    return unified_diff(normal, [Change(0, len(normal), "")], path, removed=True)


async def apply(files: Files, planned: Sequence[Planned]) -> None:
    """Write what was planned. Where that fails, what was written before is as it was."""
    writing = _Writing(files)
    try:
        for each in planned:
            await writing.do(each)
        await writing.remove([each for each in planned if each.after is None])
    except BaseException as error:
        await writing.restore(error)  # noqa: ASYNC102 it is shielded and bounded where it waits
        raise
    for each in planned:
        _remember(files, each)


def _remember(files: Files, planned: Planned) -> None:
    path, moved_to = planned.file.path, planned.file.moved_to
    if planned.after is None or moved_to is not None:
        files.memory.forget(files.key(path))
    if planned.after is not None and moved_to is not None:
        files.memory.saw(files.key(moved_to), planned.after)
    elif planned.after is not None:
        files.remember(path, planned.before, planned.after)


@final
class _Writing:
    """Knows how to take back what it did."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._workspace = files.workspace
        self._undo: list[tuple[str, Callable[[], Awaitable[object]]]] = []

    async def do(self, planned: Planned) -> None:
        path, before, after = planned.file.path, planned.before, planned.after
        if after is None:
            return  # last of all, since a file that is removed comes back without its permissions
        # What takes it back is noted first: a write that is cancelled may have happened.
        if before is None:
            self._undo.append((path, partial(self._files.remove, path)))
        elif before != after:
            self._undo.append((path, partial(self._workspace.write, path, before)))
        if before != after:
            await self._workspace.write(path, after)
        if (target := planned.file.moved_to) is not None:
            self._undo.append((path, partial(self._move_back, target, path)))
            await self._move(path, target)

    async def remove(self, planned: Sequence[Planned]) -> None:
        for each in planned:
            self._undo.append((each.file.path, partial(self._write_back, each.file.path, each.before or b"")))
        if planned:
            await self._run("rm", "-f", "--", *(each.file.path for each in planned))

    async def _write_back(self, path: str, data: bytes) -> None:
        if await self._workspace.stat(path) is None:
            await self._workspace.write(path, data)

    async def _move(self, source: str, target: str) -> None:
        await self._run("mkdir", "-p", "--", posixpath.dirname(target))
        await self._run("mv", "-n", "--", source, target)

    async def _move_back(self, target: str, source: str) -> None:
        if await self._workspace.stat(source) is None:
            await self._run("mv", "-n", "--", target, source)

    async def _run(self, *command: str) -> None:
        result = await self._workspace.run(command)
        if result.exit_code:
            raise ToolError(f"The patch was not applied: {result.stderr.strip()}")

    async def restore(self, error: BaseException) -> None:
        """Take it all back, the newest first; a note lists what could not be restored."""
        with anyio.move_on_after(_RESTORE_SECONDS, shield=True):
            await checkpoint()
            while self._undo:
                path, undo = self._undo[-1]
                try:
                    await undo()
                except (ToolError, WorkspaceError) as problem:
                    error.add_note(f"{path!r} could not be restored: {problem}")
                self._undo.pop()
        for path, _ in self._undo:
            error.add_note(f"{path!r} was not restored in time.")
