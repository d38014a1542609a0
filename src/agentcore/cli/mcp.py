"""`agentcore mcp list|check|trust`: the MCP servers that there are, and whether they work."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio.to_thread import run_sync
from rich.console import Console

from agentcore.cli.console import BAD, DIM, NAME, WARN, make_console, print_line, print_text, styled, write_json
from agentcore.cli.failures import UsageError, explain
from agentcore.cli.mcp_files import (
    MCPFiles,
    ask_to_trust,
    describe_target,
    explain_untrusted,
    print_content,
    print_problems,
    read_files,
    read_named,
)
from agentcore.cli.prompt import ask, open_keyboard
from agentcore.cli.settings import Settings, unset_variables
from agentcore.cli.text import count, one_line
from agentcore.errors import MCPServerError
from agentcore.mcp import MCPFile, MCPServer, MCPToolset
from agentcore.mcp.files import combine_files, find_project_files
from agentcore.mcp.names import tool_name
from agentcore.mcp.tokens import TokenFile, TokensUnreadable, server_key
from agentcore.mcp.trust import TrustedFiles
from agentcore.mcp.variables import expand, required_variables
from agentcore.secrets import SecretRegistry
from agentcore.tools import ToolsetContext
from agentcore.workspace import LocalWorkspace, Workspace

_OPEN_SECONDS: Final = 30.0
_NONE: Final = "No MCP servers. Add one: agentcore mcp add NAME -- COMMAND"


async def list_servers(folder: str, settings: Settings, *, named: Sequence[str], json: bool) -> int:
    """Print the servers of all files, without starting one, and return the exit code."""
    files = await run_sync(read_files, settings, folder, named)
    usable, problems = combine_files(files.usable)
    first = {id(server) for server in usable}
    console = make_console()
    any_listed = False
    for file in (*files.usable, *files.untrusted):
        for server in (*file.servers, *file.disabled):
            shadowed = file not in files.untrusted and server in file.servers and id(server) not in first
            if file in files.untrusted:
                state = "not allowed yet"
            elif server in file.disabled:
                state = "disabled"
            elif shadowed:
                continue  # a problem says so
            else:
                state = _missing(server) or await _login_state(server)
            any_listed = True
            if json:
                write_json(_as_json(server, file, state))
                continue
            line = styled(one_line(server.name), NAME).append(f"  {describe_target(server)}  ")
            line.append(one_line(file.path), DIM)
            print_line(console, line.append(f"  {state}" if state else "", WARN))
    problems += [problem for file in files.untrusted for problem in file.problems]
    if json:
        for problem in problems:
            write_json({"problem": str(problem), "server": problem.server})
        return 0
    if not any_listed:
        print_line(console, _NONE)
    print_problems(console, problems)
    for file in files.untrusted:
        print_text(console, explain_untrusted(file, settings), WARN)
    return 0


def _missing(server: MCPServer) -> str:
    missing = unset_variables(required_variables(server))
    return f"needs {', '.join(missing)}" if missing else ""


async def _login_state(server: MCPServer) -> str:
    if server.auth != "oauth":
        return ""
    try:
        key = server_key((await expand(server, SecretRegistry())).url)
        is_known = await TokenFile().read(key) is not None
    except TokensUnreadable as error:
        return f"needs login: {error}"
    except (MCPServerError, ValueError) as error:
        return str(error)
    return "" if is_known else "needs login"


def _as_json(server: MCPServer, file: MCPFile, state: str) -> dict[str, object]:
    return {
        "name": server.name,
        "file": file.path,
        "transport": server.transport,
        # As the file has them: what variables stand for is not looked up.
        **({"url": server.url} if server.command is None else {"command": [server.command, *server.args]}),
        "env": list(server.env),
        "headers": list(server.headers),
        "runs": server.runs if server.transport == "stdio" else None,
        "state": state or "ready",
    }


@dataclass
class _Checked:
    server: MCPServer
    tools: list[str] = field(default_factory=list[str])
    notices: list[str] = field(default_factory=list[str])
    problem: str | None = None


async def check_servers(
    names: Sequence[str], folder: str, settings: Settings, *, named: Sequence[str], json: bool
) -> int:
    """Open servers as a conversation does, print what they have, and return the exit code: 1 if something is wrong.

    Raises:
        UsageError: There is no server of a name, or a file of --mcp cannot be read.
    """
    console = make_console(stderr=json)
    # A file that is named is what is to be checked.
    files = (
        MCPFiles(await run_sync(read_named, named, folder)) if named else await run_sync(read_files, settings, folder)
    )
    files = await _ask_about(files, settings, console)
    servers, problems = combine_files(files.usable)
    known = {server.name for server in (*servers, *(server for file in files.untrusted for server in file.servers))}
    if unknown := set(names) - known - {problem.server for problem in problems}:
        raise UsageError(f"No MCP server is called {min(unknown)!r}. List them: {settings.program} mcp list")
    if names:
        servers = [server for server in servers if server.name in names]
        problems = [problem for problem in problems if problem.server in names]
    if json:
        for problem in problems:
            write_json({"problem": str(problem), "server": problem.server})
    else:
        print_problems(console, problems)
    all_work = not files.untrusted and not any(problem.server is not None or not problem.key for problem in problems)
    if not servers and all_work:
        print_line(console, _NONE)
    results = [_Checked(server) for server in servers]
    async with LocalWorkspace(folder) as workspace, anyio.create_task_group() as tasks:
        for result in results:
            tasks.start_soon(_check, result, workspace, json)
    return 0 if all_work and all(result.problem is None for result in results) else 1


async def _ask_about(files: MCPFiles, settings: Settings, console: Console) -> MCPFiles:
    allowed: list[MCPFile] = []
    with open_keyboard(console) as keyboard:
        for file in files.untrusted:
            if keyboard is None:
                print_text(console, explain_untrusted(file, settings), WARN)
            elif await ask_to_trust(console, keyboard, file, settings, boxed=False):
                allowed.append(file)
    left = tuple(file for file in files.untrusted if file not in allowed)
    return MCPFiles(files.named, files.user, (*files.project, *allowed), left)


async def _check(result: _Checked, workspace: Workspace, json: bool) -> None:
    context = ToolsetContext(
        workspace=workspace,
        conversation_id="mcp-check",
        secrets=SecretRegistry(),
        notice=result.notices.append,
        open_seconds=_OPEN_SECONDS,
    )
    server = result.server
    try:
        with anyio.fail_after(_OPEN_SECONDS):
            async with MCPToolset(server).open(context) as opened:
                result.tools = [tool.name for tool in opened.tools()]
    except TimeoutError:
        result.problem = f"It did not open within {_OPEN_SECONDS:g} s."
    except Exception as error:
        result.problem = f"{explain(error)[0]}{await run_sync(_hint, server)}"
    _show(result, json)


def _hint(server: MCPServer) -> str:
    """Return what to do about a program that is not here, with a space before it."""
    if server.command is None or "${" in server.command or shutil.which(server.command) is not None:
        return ""
    if " " in server.command.strip() and not server.args:
        return ' Write the program alone as "command", and the rest as "args".'
    return "" if "/" in server.command else f" Install {server.command!r}, or write its whole path."


def _show(result: _Checked, json: bool) -> None:
    console, server = make_console(), result.server
    if json:
        write_json({"name": server.name, "tools": result.tools, "notices": result.notices, "problem": result.problem})
        return
    line = styled(one_line(server.name), NAME)
    if result.problem is not None:
        print_line(console, line.append(f"  failed: {one_line(result.problem)}", BAD))
    else:
        prefix = tool_name(server.name, "")
        shown = ", ".join(name.removeprefix(prefix) for name in result.tools)
        print_line(
            console, line.append(f"  {count(len(result.tools), 'tool')}").append(f"  {one_line(shown)}".rstrip(), DIM)
        )
    for notice in result.notices:
        print_line(console, f"  {one_line(notice)}", WARN)


async def trust_files(paths: Collection[str], folder: str, settings: Settings, *, yes: bool) -> int:
    """Allow a project's files to start their servers, after a question unless `yes`, and return the exit code.

    Raises:
        UsageError: There is no such file, nothing in it can be understood, or nobody can be asked.
    """
    found = [*paths] or await run_sync(find_project_files, folder)
    if not found:
        raise UsageError(f"There is no .mcp.json or .vscode/mcp.json in {folder}.")
    files = await run_sync(read_named, found, folder)
    console = make_console()
    trusted = TrustedFiles(settings.config)
    refused = False
    for file in files:
        print_content(console, file, boxed=False)
        with open_keyboard(console) as keyboard:
            if not yes and keyboard is None:
                raise UsageError("Allowing it needs a yes, and there is no terminal to ask on. Pass --yes.")
            answer = "y" if keyboard is None or yes else await ask(console, keyboard, "Allow them? [y/N] ")
        if (answer or "").strip().lower() not in ("y", "yes"):
            refused = True
            print_line(console, "Nothing was allowed.")
            continue
        await run_sync(trusted.add, file.path, file.digest)
        print_line(console, f"{one_line(file.path)} is allowed as it is now.")
    return 1 if refused else 0
