"""The commands of `agentcore mcp`, and the options about MCP servers of other commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentcore.cli.options import CONTEXT, AsJson, Debug, Later, execute

if TYPE_CHECKING:
    from agentcore.cli import mcp, mcp_edit, mcp_login, settings
else:
    mcp, mcp_edit, mcp_login, settings = map(Later, ("mcp", "mcp_edit", "mcp_login", "settings"))

mcp_app = typer.Typer(help="Add, list and check MCP servers.", no_args_is_help=True)

MCPFile = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp",
        help="File with MCP servers to use, as a .mcp.json; can be repeated.",
        metavar="FILE",
        rich_help_panel=CONTEXT,
    ),
]
NoMCP = Annotated[
    bool, typer.Option("--no-mcp", help="Use no MCP servers but those of --mcp.", rich_help_panel=CONTEXT)
]
_Named = Annotated[
    list[str] | None, typer.Option("--mcp", help="Another file with MCP servers; can be repeated.", metavar="FILE")
]
_Folder = Annotated[str, typer.Option("--workspace", "-w", help="Folder of the project.", metavar="FOLDER")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name.")]
_NameOrUrl = Annotated[str, typer.Argument(metavar="NAME | URL", help="The server's name, or its address.")]


@mcp_app.command("list", short_help="List the servers.")
def mcp_list_command(
    *, workspace: _Folder = ".", named: _Named = None, json: AsJson = False, debug: Debug = False
) -> None:
    """List the MCP servers that an agent in a folder has: your own, and those of the project's .mcp.json and .vscode/mcp.json.

    Nothing is started. What a file has that was not understood stands at the end.
    """
    execute(
        lambda: mcp.list_servers(os.path.abspath(workspace), settings.read_settings(), named=named or (), json=json),
        debug,
    )


@mcp_app.command("add", short_help="Add a server to your own.")
def mcp_add_command(
    name: _Name,
    target: Annotated[
        list[str],
        typer.Argument(metavar="URL | -- COMMAND [ARG]...", help="The address, or the program behind two dashes."),
    ],
    *,
    header: Annotated[
        list[str] | None,
        typer.Option(
            help="Header for an address, as in 'Authorization: Bearer ${TOKEN}'; can be repeated.",
            metavar="'NAME: VALUE'",
        ),
    ] = None,
    oauth: Annotated[bool, typer.Option("--oauth", help="It wants a login: see `agentcore mcp login`.")] = False,
    transport: Annotated[Literal["http", "sse"] | None, typer.Option(help="How an address is reached (http).")] = None,
    env: Annotated[
        list[str] | None, typer.Option(help="Variable for a program; can be repeated.", metavar="NAME=VALUE")
    ] = None,
    cwd: Annotated[
        str | None, typer.Option(help="Folder that a program starts in (that of the conversation).", metavar="FOLDER")
    ] = None,
    debug: Debug = False,
) -> None:
    """Add an MCP server to your own, which the agents of `agentcore run` have in every folder. Its program runs on this machine.

    agentcore mcp add time -- uvx mcp-server-time

    agentcore mcp add docs https://example.org/mcp --header 'Authorization: Bearer ${TOKEN}'

    ${TOKEN} stays as it is in the file, and is replaced by that variable when the server is opened.
    """
    execute(
        lambda: mcp_edit.add_server(
            name,
            target,
            settings.read_settings(),
            transport=transport,
            headers=header or (),
            env=env or (),
            cwd=cwd,
            oauth=oauth,
        ),
        debug,
    )


@mcp_app.command("remove", short_help="Remove a server from your own.")
def mcp_remove_command(name: _Name, *, debug: Debug = False) -> None:
    """Remove an MCP server from your own. Those of a project are in its files."""
    execute(lambda: mcp_edit.remove_server(name, settings.read_settings()), debug)


@mcp_app.command("login", short_help="Log in to a server in the browser.")
def mcp_login_command(
    name: _NameOrUrl,
    *,
    workspace: _Folder = ".",
    named: _Named = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the browser, or print the address only.")
    ] = True,
    client_id: Annotated[
        str | None,
        typer.Option(help="Client id that was registered by hand, where a server registers none.", metavar="ID"),
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port of this machine that the browser comes back to (any).", min=0, max=65_535)
    ] = 0,
    debug: Debug = False,
) -> None:
    """Log in to an MCP server that wants it (OAuth), in the browser. The tokens are kept in a file of yours, and renewed when they end.

    The browser comes back to 127.0.0.1, so it has to run on this machine. It is waited for 5 minutes.
    """
    execute(
        lambda: mcp_login.log_in(
            name,
            os.path.abspath(workspace),
            settings.read_settings(),
            named=named or (),
            browser=browser,
            client_id=client_id,
            port=port,
        ),
        debug,
    )


@mcp_app.command("logout", short_help="Remove the tokens of a server.")
def mcp_logout_command(
    name: _NameOrUrl, *, workspace: _Folder = ".", named: _Named = None, debug: Debug = False
) -> None:
    """Remove the tokens of an MCP server from this machine. The server is not told."""
    execute(
        lambda: mcp_login.log_out(name, os.path.abspath(workspace), settings.read_settings(), named=named or ()), debug
    )


@mcp_app.command("check", short_help="Open servers, and say what they have.")
def mcp_check_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="The servers to check; all if none is named.")
    ] = None,
    *,
    workspace: _Folder = ".",
    named: Annotated[
        list[str] | None,
        typer.Option("--mcp", help="Check the servers of this file; can be repeated.", metavar="FILE"),
    ] = None,
    json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Open MCP servers as a conversation does, and list their tools, or what is wrong with them.

    The exit code is 1 if one cannot be opened, or a file has an entry that was not understood.
    """
    execute(
        lambda: mcp.check_servers(
            names or (), os.path.abspath(workspace), settings.read_settings(), named=named or (), json=json
        ),
        debug,
    )


@mcp_app.command("trust", short_help="Allow a project's file to start its servers.")
def mcp_trust_command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="The files; those of the folder if none is named."),
    ] = None,
    *,
    workspace: _Folder = ".",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    debug: Debug = False,
) -> None:
    """Allow the .mcp.json and .vscode/mcp.json of a project to start what they list, as they are now.

    A project's files come from whoever wrote the project, so `agentcore run` asks before it uses them first, and again when they have
    changed; without a terminal it leaves them out. Read what is shown: it runs with your rights unless a sandbox is used.
    """
    execute(lambda: mcp.trust_files(paths or (), os.path.abspath(workspace), settings.read_settings(), yes=yes), debug)
