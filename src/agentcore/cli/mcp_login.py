"""`agentcore mcp login` and `agentcore mcp logout`: the tokens of MCP servers that want a person to log in."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from rich.console import Console

from agentcore.cli.console import DIM, WARN, make_console, print_line, print_text
from agentcore.cli.failures import UsageError
from agentcore.cli.mcp_files import explain_untrusted, read_files
from agentcore.cli.settings import Settings
from agentcore.cli.text import one_line
from agentcore.mcp import MCPServer
from agentcore.mcp.files import combine_files
from agentcore.mcp.tokens import TokenFile, TokensUnreadable, server_key
from agentcore.mcp.toolset import load
from agentcore.mcp.variables import expand
from agentcore.secrets import SecretRegistry


async def log_in(
    name: str,
    folder: str,
    settings: Settings,
    *,
    named: Sequence[str],
    browser: bool,
    client_id: str | None,
    port: int,
) -> int:
    """Log in to a server in the browser, and return the exit code.

    Raises:
        UsageError: There is no such server, or it is not one to log in to.
        MCPServerError: There was no login.
    """
    server = await run_sync(_find, name, folder, settings, named)
    console = make_console()

    async def open_page(address: str) -> None:
        opened = browser and await run_sync(_open_browser, address)
        where = one_line(urlsplit(address).hostname or "")
        if opened:
            print_text(console, f"Log in at {where}, in the browser. If it does not show the page, open this address:")
        else:
            print_text(console, f"Log in at {where}: open this address in a browser of this machine.")
        print_line(console, one_line(address))

    module = await run_sync(load, "login")
    aside: str | None = await module.log_in(
        server, SecretRegistry(), open_page, file=TokenFile(), client_id=client_id, port=port
    )
    _print_aside(console, aside)
    print_line(console, f"logged in to {one_line(name)}")
    print_line(console, f"try it: {settings.program} mcp check {one_line(name)}", DIM)
    return 0


def _open_browser(address: str) -> bool:
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False


async def log_out(name: str, folder: str, settings: Settings, *, named: Sequence[str]) -> int:
    """Remove the tokens of a server, and return the exit code: 1 if there were none.

    Raises:
        UsageError: There is no such server, or it is not one to log in to.
        MCPServerError: Its address cannot be made of its settings.
    """
    server = await run_sync(_find, name, folder, settings, named)
    key, file = server_key((await expand(server, SecretRegistry())).url), TokenFile()
    console = make_console()
    async with file.locked() as held:
        try:
            had_tokens = await held.read(key) is not None
        except TokensUnreadable:
            had_tokens = False
        _print_aside(console, await held.write(key, None))
    print_line(console, f"logged out of {one_line(name)}" if had_tokens else f"There is no login to {one_line(name)}.")
    return 0 if had_tokens else 1


def _print_aside(console: Console, aside: str | None) -> None:
    if aside is not None:
        print_text(
            console, f"The file with the other logins could not be understood. It is {one_line(aside)} now.", WARN
        )


def _find(name: str, folder: str, settings: Settings, named: Sequence[str]) -> MCPServer:
    if name.startswith(("http://", "https://")):
        return MCPServer(name="server", url=name, auth="oauth")
    files = read_files(settings, folder, named)
    servers, _ = combine_files(files.usable)
    for server in servers:
        if server.name == name:
            if server.transport == "stdio":
                raise UsageError(f"The MCP server {name!r} is a program. It gets its tokens by --env.")
            return server
    for file in files.untrusted:
        if any(server.name == name for server in file.servers):
            raise UsageError(explain_untrusted(file, settings))
    raise UsageError(f"No MCP server is called {name!r}. List them: {settings.program} mcp list")
