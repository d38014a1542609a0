"""The MCP servers of the command line: those of `--mcp FILE`, of the user's own file, and of the project's files once they are trusted.

The user's own run on this machine. Those of a file inside of the workspace's folder run in the workspace, in its sandbox if it has
one: an agent that works there may have written the file.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from anyio.to_thread import run_sync
from rich.console import Console
from rich.text import Text

from agentcore.cli.console import DIM, NAME, WARN, Glyphs, print_line, print_text, styled
from agentcore.cli.failures import UsageError
from agentcore.cli.prompt import ask, open_keyboard
from agentcore.cli.settings import Settings
from agentcore.cli.text import one_line
from agentcore.errors import ToolError
from agentcore.mcp import MCPFile, MCPProblem, MCPServer, MCPToolset, mcp_toolsets, read_mcp_file
from agentcore.mcp.files import combine_files, find_project_files
from agentcore.mcp.trust import TrustedFiles
from agentcore.record import ConversationState
from agentcore.tools import OpenToolset, ToolsetContext, ToolsetSpec, register_toolset

_USER_FILE: Final = "mcp.json"
_KIND: Final = "mcp"
_UNLISTED: Final = "unlisted_mcp_server"
_PLAIN: Final = re.compile(r"[^\s'\"\\]+")


@dataclass(frozen=True)
class MCPFiles:
    """The files that servers come from, in the order in which a name is looked for."""

    named: tuple[MCPFile, ...] = ()
    """Those of --mcp."""
    user: MCPFile | None = None
    project: tuple[MCPFile, ...] = ()
    untrusted: tuple[MCPFile, ...] = ()
    """Those of the project that may not be used, or not yet."""

    @property
    def usable(self) -> tuple[MCPFile, ...]:
        """The files whose servers may be started."""
        return (*self.named, *(() if self.user is None else (self.user,)), *self.project)


def user_file(settings: Settings) -> str:
    """Return the path of the user's own file."""
    return os.path.join(settings.config, _USER_FILE)


def read_named(paths: Sequence[str], folder: str | None) -> tuple[MCPFile, ...]:
    """Read the files of --mcp.

    Raises:
        UsageError: One of them cannot be read.
    """
    files: list[MCPFile] = []
    for path in paths:
        file = read_mcp_file(path, runs="workspace" if folder is not None and _is_inside(path, folder) else "host")
        if not file.readable:
            raise UsageError(str(file.problems[0]))
        files.append(file)
    return tuple(files)


def _is_inside(path: str, folder: str) -> bool:
    """Return whether a file is in a folder, by its path or by what that leads to."""
    roots = [f"{root.rstrip('/')}/" for root in (os.path.abspath(folder), os.path.realpath(folder))]
    return any(at.startswith(root) for at in (os.path.abspath(path), os.path.realpath(path)) for root in roots)


def read_files(settings: Settings, folder: str | None, named: Sequence[str] = ()) -> MCPFiles:
    """Read the files of --mcp, of the user, and of the project in a folder; nothing is asked. It touches the disk.

    Raises:
        UsageError: A file of --mcp cannot be read.
    """
    trusted = TrustedFiles(settings.config)
    real = {os.path.realpath(path) for path in named}
    own = user_file(settings)
    project = [
        read_mcp_file(path)
        for path in (() if folder is None else find_project_files(folder))
        if os.path.realpath(path) not in real | {os.path.realpath(own)}
    ]
    is_user_file = os.path.lexists(own) and os.path.realpath(own) not in real
    return MCPFiles(
        named=read_named(named, folder),
        user=read_mcp_file(own, runs="host") if is_user_file else None,
        # One without servers starts nothing.
        project=tuple(file for file in project if not file.servers or trusted.contains(file.path, file.digest)),
        untrusted=tuple(file for file in project if file.servers and not trusted.contains(file.path, file.digest)),
    )


@dataclass(frozen=True)
class Servers:
    """The servers that an agent may use, by name."""

    by_name: Mapping[str, MCPServer] = field(default_factory=dict[str, MCPServer])
    named: tuple[str, ...] = ()
    """The names of those that --mcp brought."""

    def toolsets(self, names: Collection[str] | None = None) -> tuple[MCPToolset, ...]:
        """Return those of these names as toolsets, or all."""
        return tuple(MCPToolset(server) for name, server in self.by_name.items() if names is None or name in names)


NO_SERVERS: Final = Servers()


def take_servers(files: MCPFiles, console: Console) -> Servers:
    """Make the servers of files known to logs, and print what keeps one of them from being used."""
    servers, problems = combine_files(files.usable)
    print_problems(console, (problem for problem in problems if problem.server is not None or not problem.key))
    mcp_toolsets(MCPFile(path="", servers=tuple(servers)))
    named = {server.name for file in files.named for server in file.servers}
    return Servers(
        {server.name: server for server in servers}, tuple(server.name for server in servers if server.name in named)
    )


async def trusted_servers(settings: Settings, folder: str | None, console: Console) -> Servers:
    """Return the servers that need no question, for what does not go on with the work."""
    return take_servers(await run_sync(read_files, settings, folder), console)


async def find_servers(
    settings: Settings,
    folder: str | None,
    named: Sequence[str],
    console: Console,
    *,
    boxed: bool,
    named_only: bool = False,
    stdin_taken: bool = False,
) -> Servers:
    """Read all files, ask about those of the project that are not trusted, and return the servers.

    Args:
        settings: Where the user's own file is.
        folder: The project; None where its folder is not on this machine.
        named: The values of --mcp.
        console: Where is asked, and problems are printed.
        boxed: Whether the workspace is a sandbox.
        named_only: Whether to leave out all but those of --mcp.
        stdin_taken: Whether standard input has the task, so that the terminal itself is asked.

    Raises:
        UsageError: A file of --mcp cannot be read.
    """
    if named_only:
        return take_servers(MCPFiles(await run_sync(read_named, named, folder)), console)
    files = await run_sync(read_files, settings, folder, named)
    allowed: list[MCPFile] = []
    if files.untrusted:
        with open_keyboard(console, stdin_taken=stdin_taken) as keyboard:
            for file in files.untrusted:
                if keyboard is None:
                    print_text(console, explain_untrusted(file, settings), WARN)
                elif await ask_to_trust(console, keyboard, file, settings, boxed=boxed):
                    allowed.append(file)
    return take_servers(MCPFiles(files.named, files.user, (*files.project, *allowed)), console)


def explain_untrusted(file: MCPFile, settings: Settings) -> str:
    """Return a sentence on a project's file that was not asked about, and how to allow it."""
    shown = shlex.quote(one_line(file.path))
    return (
        f"{shown} is left out: nobody has allowed it yet to start its MCP servers. "
        f"Allow it: {settings.program} mcp trust {shown}, or for this once: --mcp {shown}"
    )


async def ask_to_trust(console: Console, keyboard: int, file: MCPFile, settings: Settings, *, boxed: bool) -> bool:
    """Show what a project's file would start, ask, and remember a yes."""
    print_content(console, file, boxed=boxed)
    answer = await ask(console, keyboard, "Use them? [y/N] ")
    if (answer or "").strip().lower() not in ("y", "yes"):
        return False
    try:
        await run_sync(TrustedFiles(settings.config).add, file.path, file.digest)
    except OSError as error:
        print_text(console, f"This cannot be remembered in {settings.config!r}: {error.strerror}.", WARN)
    return True


def print_content(console: Console, file: MCPFile, *, boxed: bool) -> None:
    """Print all that a file would start and reach."""
    print_text(console, f"{one_line(file.path)} lists MCP servers, and is new here or has changed:", WARN)
    bar = f" {Glyphs(console.encoding).bar} "
    for server in file.servers:
        for line in _describe(server):
            print_line(console, styled(bar, DIM).append_text(line))
    where = "in the sandbox" if boxed else "as you, and may do what you may"
    print_text(
        console,
        f"Programs run {where}; addresses are reached from this machine, with the headers shown and your logins.",
    )


def _describe(server: MCPServer) -> Iterable[Text]:
    yield styled(one_line(server.name), NAME).append(f"  {describe_target(server)}")
    if server.cwd is not None:
        yield Text(f"    in {one_line(server.cwd)}")
    for name, value in server.env.items():
        yield Text(f"    {one_line(name)}={one_line(value)}")
    for name, value in server.headers.items():
        yield Text(f"    {one_line(name)}: {one_line(value)}")


def describe_target(server: MCPServer) -> str:
    """Return the command line or the address of a server, its variables as they are written."""
    if server.command is None:
        return one_line(server.url or "")
    return " ".join(
        one_line(part if _PLAIN.fullmatch(part) else shlex.quote(part)) for part in (server.command, *server.args)
    )


def print_problems(console: Console, problems: Iterable[MCPProblem]) -> None:
    """Print what is wrong with files, a line each."""
    for problem in problems:
        print_line(console, one_line(str(problem)), WARN)


# A conversation that is resumed.


@dataclass(frozen=True)
class UnlistedServer:
    """A recorded server that no file lists now. It keeps its place in the record, and is missing."""

    spec: ToolsetSpec

    @property
    def name(self) -> str:
        return str(self.spec.params.get("name"))

    @property
    def session_key(self) -> str | None:
        return None

    def record(self) -> ToolsetSpec:
        return self.spec

    def open(self, context: ToolsetContext, /) -> AbstractAsyncContextManager[OpenToolset]:
        return self._open(context)

    @asynccontextmanager
    async def _open(self, context: ToolsetContext) -> AsyncGenerator[OpenToolset]:
        del context
        raise ToolError(
            "no file that may be used lists this MCP server now. Allow the file that does (agentcore mcp trust), or pass it: --mcp FILE"
        )
        yield  # what makes it a context


def _make_unlisted(**spec: Any) -> UnlistedServer:
    return UnlistedServer(ToolsetSpec.model_validate(spec))


def had_servers(state: ConversationState) -> bool:
    """Return whether the agent of a conversation had MCP servers, or nobody knows which agent it had."""
    return state.agent is None or bool(recorded_names(state.agent.agent))


def recorded_names(recorded: Mapping[str, Any]) -> set[str]:
    """Return the names of the MCP servers of a recorded agent."""
    return {name for spec in recorded.get("toolsets", ()) for name in _names(spec)}


def renew_recorded(recorded: Mapping[str, Any], servers: Servers, *, leave_out: bool) -> dict[str, Any]:
    """Return a recorded agent with its MCP servers as files list them now.

    Args:
        recorded: The agent.
        servers: The servers that there are.
        leave_out: Whether it is to have none.
    """
    register_toolset(_UNLISTED, _make_unlisted)
    specs = [spec for spec in recorded.get("toolsets", ()) if not (leave_out and _names(spec))]
    renewed = {**recorded, "toolsets": [_renew(spec, servers) for spec in specs]}
    if not specs:
        del renewed["toolsets"]
    return renewed


def _names(spec: Any) -> set[str]:
    inner = _inner(spec)
    return set() if inner is None else {str(inner["params"].get("name"))}


def _inner(spec: Any) -> Mapping[str, Any] | None:
    """Return the record of the MCP server that is in a toolset's, if there is one."""
    while isinstance(spec, Mapping):
        each = cast("Mapping[str, Any]", spec)
        params = each.get("params")
        if not isinstance(params, Mapping):
            return None
        if each.get("name") == _KIND:
            return each
        spec = cast("Mapping[str, Any]", params).get("toolset")
    return None


def _renew(spec: Any, servers: Servers) -> Any:
    inner = _inner(spec)
    if inner is None:
        return spec
    if inner is not spec:
        return {**spec, "params": {**spec["params"], "toolset": _renew(spec["params"]["toolset"], servers)}}
    server = servers.by_name.get(str(inner["params"].get("name")))
    if server is None:
        return {"name": _UNLISTED, "params": dict(spec)}
    return MCPToolset(server).record().model_dump(mode="json")
