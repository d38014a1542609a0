"""Files that list MCP servers: `.mcp.json` ("mcpServers") as most programs write it, and VS Code's `.vscode/mcp.json` ("servers").

Above: `mcp_toolsets` and the command line. Below: `entries.py`, which reads one server. Nothing here starts or reaches a server.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Final

from agentcore._arguments import FOLDER, checked, one_of
from agentcore.mcp.entries import EntryFault, Runs, parse_entry
from agentcore.mcp.jsonc import Malformed, Members, parse
from agentcore.mcp.server import MCPServer

PROJECT_FILES: Final = (".mcp.json", ".vscode/mcp.json")
"""Where a project's folder has its servers."""

_MOST_BYTES: Final = 1_000_000
_SHAPES: Final = ("mcpServers", "servers")


@dataclass(frozen=True)
class MCPProblem:
    """A fault of a file, or of one server in it."""

    path: str
    key: str
    """The key that is wrong, as in "mcpServers.github.type"; empty if it is the file."""
    sentence: str
    """The fault, and what to write instead."""
    server: str | None = None
    """The server that is left out for it, if one is."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.path, self.key, self.sentence) if part)


@dataclass(frozen=True)
class MCPFile:
    """The servers that a file lists."""

    path: str
    servers: tuple[MCPServer, ...] = ()
    problems: tuple[MCPProblem, ...] = ()
    disabled: tuple[MCPServer, ...] = ()
    """Those that the file turns off."""
    digest: str = ""
    """The hash of its content."""
    readable: bool = True
    """False if there is no such file, or nothing in it can be understood: the first problem says why."""


@checked(path=FOLDER._replace(description="the path of a file"), runs=one_of("host", "workspace"))
def read_mcp_file(path: str | PathLike[str], *, runs: Runs = "workspace") -> MCPFile:
    """Read a file of MCP servers. It touches the disk, so call it in a worker thread where that must not block.

    A bad entry is a problem, and the others are read. It never raises for what a file holds.

    Args:
        path: The file.
        runs: Where its programs run: in the conversation's workspace, as is right for a project's file, or on this machine.
    """
    shown = os.fspath(path)
    try:
        content = _read(shown)
    except OSError as error:
        reason = "No such file." if error.errno == errno.ENOENT else f"It cannot be read: {error.strerror}."
        return _unreadable(shown, reason)
    if content is None:
        return _unreadable(shown, "It is not a file.")
    return parse_mcp_file(shown, content, runs=runs)


def parse_mcp_file(path: str, content: bytes, *, runs: Runs = "workspace") -> MCPFile:
    """Parse the content of a file, as `read_mcp_file` does."""
    digest = hashlib.sha256(content).hexdigest()
    if len(content) > _MOST_BYTES:
        return _unreadable(path, f"It has more than {_MOST_BYTES:,} bytes.", digest)
    try:
        root = parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return _unreadable(path, "It is not UTF-8.", digest)
    except Malformed as error:
        return _unreadable(path, str(error), digest)
    if not isinstance(root, Members) or not any(shape in root for shape in _SHAPES):
        return _unreadable(path, 'It has no servers. Write {"mcpServers": {"name": {"command": "..."}}}.', digest)
    reader = _FileReader(path, runs)
    reader.read(root)
    return MCPFile(path, tuple(reader.servers), tuple(reader.problems), tuple(reader.disabled), digest)


def find_project_files(folder: str) -> list[str]:
    """Return the paths of the files that a project's folder has."""
    return [path for name in PROJECT_FILES if os.path.lexists(path := os.path.join(folder, name))]


def combine_files(files: Iterable[MCPFile]) -> tuple[list[MCPServer], list[MCPProblem]]:
    """Return the servers and problems of several files. Of two servers with one name the first is taken."""
    servers: dict[str, tuple[MCPServer, str]] = {}
    problems: list[MCPProblem] = []
    for file in files:
        problems += file.problems
        for server in file.servers:
            taken, where = servers.setdefault(server.name, (server, file.path))
            if taken is not server and taken.digest != server.digest:
                sentence = f"{where} has a server of this name too, and that one is used. Rename this one."
                problems.append(MCPProblem(file.path, server.name, sentence, server.name))
    return [server for server, _ in servers.values()], problems


class _FileReader:
    def __init__(self, path: str, runs: Runs) -> None:
        self._path = path
        self._runs: Runs = runs
        folder = os.path.dirname(os.path.abspath(path))
        self._folder = os.path.dirname(folder) if os.path.basename(folder) == ".vscode" else folder
        self.servers: list[MCPServer] = []
        self.disabled: list[MCPServer] = []
        self.problems: list[MCPProblem] = []

    def read(self, root: Members) -> None:
        for shape in (shape for shape in _SHAPES if shape in root):
            entries = root[shape]
            if shape in root.repeated:
                self._note(shape, "This key stands here twice, and the first is read. Write it once.")
            if not isinstance(entries, Members):
                self._note(shape, 'Write it as an object, as in {"name": {"command": "..."}}.')
                continue
            for name in entries.repeated:
                self._note(f"{shape}.{name}", "This name stands here twice, and the first is used. Rename the other.")
            for name, entry in entries.items():
                self._read_entry(shape, name, entry)
        if root.get("inputs"):
            self._note("inputs", "It is not supported. Write ${VAR} where a value is wanted, and set the variable VAR.")

    def _read_entry(self, shape: str, name: str, entry: object) -> None:
        key = f"{shape}.{name}"
        if any(server.name == name for server in (*self.servers, *self.disabled)):
            self._note(key, "This name stands here twice, and the first is used. Rename this one.", name)
            return
        try:
            made = parse_entry(name, entry, runs=self._runs, folder=self._folder)
        except EntryFault as fault:
            self._note(f"{key}.{fault.key}" if fault.key else key, str(fault), name)
            return
        for ignored, why in made.ignored:
            self._note(f"{key}.{ignored}", why)
        (self.disabled if made.disabled else self.servers).append(made.server)

    def _note(self, key: str, sentence: str, server: str | None = None) -> None:
        self.problems.append(MCPProblem(self._path, key, sentence, server))


def _read(path: str) -> bytes | None:
    """Return the content of a file, cut off where it is too long; None if it is something else, as a pipe that would be waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return file.read(_MOST_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _unreadable(path: str, reason: str, digest: str = "") -> MCPFile:
    return MCPFile(path, problems=(MCPProblem(path, "", reason),), digest=digest, readable=False)
