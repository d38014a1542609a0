"""Where a tool may go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

from pydantic import JsonValue

from agentcore._value import Value
from agentcore.errors import PathError, ToolError, WorkspaceError
from agentcore.workspace import Workspace, real_paths

_ELSEWHERE: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_MOST_KNOWN: Final = 10_000


class AllowedPaths(Value):
    """The files that a tool may read and write: by default those in the workspace's folder."""

    extra_roots: tuple[str, ...] = ()
    """Other folders; "/" is everything."""
    confine_to: tuple[str, ...] | None = None
    """The only files that may be written; others may be read."""

    @property
    def params(self) -> dict[str, JsonValue]:
        """Return the parameters to record."""
        given: dict[str, JsonValue] = {"extra_roots": list(self.extra_roots)} if self.extra_roots else {}
        return given if self.confine_to is None else {**given, "confine_to": list(self.confine_to)}


@final
class PathGuard:
    """Keeps a tool of one conversation to its allowed paths."""

    def __init__(self, workspace: Workspace, conversation_id: str, allowed: AllowedPaths) -> None:
        self._workspace = workspace
        self._conversation_id = conversation_id
        self._allowed = allowed
        # Looking costs a command. Who can make links afterwards has a terminal, which no border keeps in.
        self._real: dict[str, str] = {}

    async def pass_(self, path: str, *, writing: bool) -> str:
        """Return the absolute path for a path that a model named."""
        absolute = self._resolve(path)
        if writing and self._allowed.confine_to is not None:
            allowed = [self._workspace.resolve(each) for each in self._allowed.confine_to]
            if absolute not in allowed:
                raise ToolError(
                    f"{path!r} may not be written. The only file that may be is {' or '.join(map(repr, allowed))}."
                )
            await self._refuse_link(path, absolute)
        if absolute not in self._real:
            await self._check(path, absolute, writing)
        return absolute

    def real(self, absolute: str) -> str:
        """Return the path of a file that was passed with links followed, as they were then: one file has one such path."""
        return self._real.get(absolute, absolute)

    def _resolve(self, path: str) -> str:
        if not path.strip():
            raise ToolError(f"The path is empty. The workspace's folder is {self._workspace.root!r}.")
        if path.startswith("~"):
            raise ToolError(f"{path!r}: a home folder can't be given by '~' here. Give the path in full.")
        if _ELSEWHERE.match(path):
            raise ToolError(
                f"{path!r} is a path for Windows. Here, paths look like {self._workspace.resolve('a/b')!r}."
            )
        if "\0" in path:
            raise ToolError(f"{path!r} can't be a path: there is a NUL in it.")
        return self._workspace.resolve(path)

    async def _check(self, path: str, absolute: str, writing: bool) -> None:
        folders = [self._workspace.root, *map(self._workspace.resolve, self._allowed.extra_roots)]
        real, *real_folders = await self.followed([absolute, *folders])
        if any(_is_in(real, folder) for folder in real_folders):
            if len(self._real) >= _MOST_KNOWN:
                self._real.clear()
            self._real[absolute] = real
            return
        # Where the whole of long outputs is kept for the model to read.
        if not writing and _is_in(absolute, await self._workspace.private_folder(self._conversation_id)):
            return
        where = "" if real == absolute else f", which is {real!r}"
        also = "".join(f" or {folder!r}" for folder in folders[1:])
        raise ToolError(
            f"{path!r}{where} is outside of the workspace's folder. This tool stays in {self._workspace.root!r}{also}."
        )

    async def _refuse_link(self, path: str, absolute: str) -> None:
        """Refuse a name that may be written but is another file's: a link."""
        real, root = await self.followed([absolute, self._workspace.root])
        inside = absolute.removeprefix(self._workspace.root)
        if absolute != real and real != f"{root.rstrip('/')}/{inside.lstrip('/')}":
            raise ToolError(f"{path!r} may not be written: it is a link to {real!r}.")

    async def followed(self, paths: Sequence[str]) -> list[str]:
        """Return absolute paths with links followed. The paths need not exist."""
        try:
            found = await real_paths(self._workspace, paths)
        except WorkspaceError as error:
            raise ToolError(str(error)) from error
        if refused := next((each for each in found if isinstance(each, PathError)), None):
            raise ToolError(str(refused))
        return [each for each in found if isinstance(each, str)]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
