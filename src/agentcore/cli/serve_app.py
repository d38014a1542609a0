"""The options of `agentcore serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentcore.cli.options import SECURITY, BaseUrl, Debug, Later, execute
from agentcore.cli.sandbox_app import Network, Sandbox, SandboxImage

if TYPE_CHECKING:
    from agentcore.cli import serve
else:
    serve = Later("serve")

Log = Annotated[Literal["text", "json", "none"], typer.Option(help="The form of the log on standard error.")]


def serve_command(
    *,
    host: Annotated[
        str | None, typer.Option(help="Address to listen at (127.0.0.1).", show_default=False, metavar="HOST")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port (8420); 0 takes any that is free.", min=0, max=65_535, metavar="PORT")
    ] = None,
    unix: Annotated[
        str | None, typer.Option(help="Listen at this Unix socket instead of a port.", metavar="PATH")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="Folder of the logs and keys (~/.agentcore/serve).", metavar="FOLDER")
    ] = None,
    root: Annotated[
        str | None, typer.Option(help="Folder that all workspaces are in (this folder).", metavar="FOLDER")
    ] = None,
    agents: Annotated[
        str | None, typer.Option(help="File with the agents that clients can name.", metavar="FILE")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model of the one agent that there is without --agents, with the tools of `agentcore run` (or AGENTCORE_MODEL).",
            metavar="PROVIDER/MODEL",
        ),
    ] = None,
    base_url: BaseUrl = None,
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            help="File with MCP servers that agents may use, as a .mcp.json; can be repeated.", metavar="FILE"
        ),
    ] = None,
    api_key_file: Annotated[
        str | None,
        typer.Option(
            help="File with one key of 32 characters or more that may do everything.",
            metavar="FILE",
            rich_help_panel=SECURITY,
        ),
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Ask for no keys; on loopback only.", rich_help_panel=SECURITY)
    ] = False,
    sandbox: Sandbox = None,
    network: Network = None,
    sandbox_image: SandboxImage = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy in front ends TLS and says who asks.", rich_help_panel=SECURITY),
    ] = False,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name that requests may be addressed to; can be repeated.", metavar="NAME", rich_help_panel=SECURITY
        ),
    ] = None,
    views_host: Annotated[
        str | None,
        typer.Option(
            help="Name below which each view of a sandbox has a host of its own; all names below it lead here.",
            metavar="NAME",
            rich_help_panel=SECURITY,
        ),
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option(help="Certificate for TLS.", metavar="FILE", rich_help_panel=SECURITY)
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option(help="Its private key.", metavar="FILE", rich_help_panel=SECURITY)
    ] = None,
    shared_user: Annotated[
        bool,
        typer.Option(
            "--shared-user",
            help="Let several owners work on this machine, whose shells can read each other's files.",
            rich_help_panel=SECURITY,
        ),
    ] = False,
    log: Log = "text",
    debug: Debug = False,
) -> None:
    """Serve conversations to other programs and machines.

    Prints one line of JSON with its address when it takes requests. Ctrl-C or SIGTERM ends it in order: streams are closed and
    the steps under way come to their end, for at most 10 seconds; a second one ends it at once.

    Each option can be a variable as well, such as AGENTCORE_SERVE_PORT. Keys are made with `agentcore keys add`; where there is none yet, the
    first start on this machine makes one and prints it.
    """
    flags = {
        "host": host,
        "port": port,
        "unix": unix,
        "store": store,
        "root": root,
        "agents": agents,
        "api_key_file": api_key_file,
        "auth": False if no_auth else None,
        "behind_proxy": behind_proxy or None,
        "allowed_hosts": tuple(allowed_host) if allowed_host else None,
        "views_host": views_host,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "shared_user": shared_user or None,
        "sandbox": sandbox,
        "sandbox_image": sandbox_image,
        "network": network,
    }
    execute(
        lambda: serve.serve(
            flags,
            model=model,
            base_url=base_url,
            mcp=mcp or (),
            log=log,
            level="DEBUG" if debug else "INFO",
        ),
        debug,
    )
