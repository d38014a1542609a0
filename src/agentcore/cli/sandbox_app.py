"""The commands of `agentcore sandbox`, the options `--sandbox ...` of other commands, and `agentcore rewind`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentcore.cli.options import SECURITY, AsJson, Debug, Home, Later, execute

if TYPE_CHECKING:
    from agentcore.cli import rewind, sandbox, sandbox_build, sandbox_views, settings
else:
    rewind, sandbox, settings = map(Later, ("rewind", "sandbox", "settings"))
    sandbox_build, sandbox_views = map(Later, ("sandbox_build", "sandbox_views"))

Sandbox = Annotated[
    Literal["docker", "bubblewrap"] | None,
    typer.Option(
        "--sandbox", help="Run commands in a container, or in namespaces of their own.", rich_help_panel=SECURITY
    ),
]
Network = Annotated[
    str | None,
    typer.Option(
        "--network",
        help="The sandbox's network: none (the default), full, or allow:HOST,HOST.",
        metavar="NETWORK",
        rich_help_panel=SECURITY,
    ),
]
SandboxImage = Annotated[
    str | None,
    typer.Option(
        "--sandbox-image",
        help="The container's image (python:3.12): any with sh and Python; git for checkpoints.",
        metavar="IMAGE",
        rich_help_panel=SECURITY,
    ),
]
Checkpoints = Annotated[
    bool, typer.Option("--checkpoints", help="Save the files at each step, so that rewind --files can bring them back.")
]
_Box = Annotated[str, typer.Argument(metavar="BOX", help="Id of the box, as `agentcore sandbox list` shows it.")]

sandbox_app = typer.Typer(help="List, prune and look into the containers of agents.", no_args_is_help=True)


@sandbox_app.command("list", short_help="List the boxes.")
def list_command(*, json: AsJson = False, debug: Debug = False) -> None:
    """List the boxes at the Docker engine, the oldest first."""
    execute(lambda: sandbox.list_sandboxes(json=json), debug)


@sandbox_app.command("prune", short_help="Remove boxes that are not in use.")
def prune_command(
    *,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also boxes that run, that are kept (keep=True, those of a server) or that have not expired: all of yours that are not in use.",
        ),
    ] = False,
    debug: Debug = False,
) -> None:
    """Remove your boxes that have ended, have expired and are not in use, with their volumes and the files in those.

    In use is a box while a program of agentcore works in it or a shell is open in it: it is never removed, not by --all either. Folders of
    this machine that a box works in stay as they are.
    """
    execute(lambda: sandbox.prune_sandboxes(everything=everything), debug)


@sandbox_app.command("shell", short_help="Open a shell in a box.")
def shell_command(box: _Box, *, debug: Debug = False) -> None:
    """Open a shell in a box that runs, on this terminal."""
    execute(lambda: sandbox.open_sandbox_shell(box), debug)


@sandbox_app.command("views", short_help="Look at a box in a browser.")
def views_command(box: _Box, *, json: AsJson = False, debug: Debug = False) -> None:
    """Print addresses for a browser of the desktop, editor or terminal in a box that runs, and serve them until Ctrl-C.

    Each address opens its view once, within a minute, and the browser that used it looks on until the end. What serves a view is started
    when it is first looked at, and ended in the end. The image has to offer views: `agentcore sandbox build` makes such images.
    """
    execute(lambda: sandbox_views.serve_views(box, json=json), debug)


@sandbox_app.command("logs", short_help="Show what a box wrote about itself.")
def logs_command(
    box: _Box,
    *,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many lines.", min=1, metavar="N")] = 100,
    debug: Debug = False,
) -> None:
    """Show the last lines that a box wrote about itself."""
    execute(lambda: sandbox.show_sandbox_log(box, lines=lines), debug)


@sandbox_app.command("build", short_help="Build an image with a desktop, an editor or a terminal.")
def build_command(
    *,
    base: Annotated[
        str,
        typer.Option("--base", help="Begin with this image: Debian 12, or one that is based on it.", metavar="IMAGE"),
    ] = "debian:12",
    parts: Annotated[str, typer.Option("--with", help="Parts: desktop, editor, terminal.", metavar="PART,PART")] = "",
    tag: Annotated[str | None, typer.Option("--tag", help="The name of the new image.", metavar="NAME")] = None,
    network: Annotated[
        Literal["default", "host"],
        typer.Option("--network", help="The network of the build: host where containers have none."),
    ] = "default",
    json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Build an image for boxes from one that is there, with Python and what views need.

    Without --with it is the base, with Python. Proxies, certificates (SSL_CERT_FILE) and registries are taken from the environment.
    """
    execute(lambda: sandbox_build.build_sandbox_image(base, parts, tag, network, json=json), debug)


def rewind_command(
    conversation: Annotated[str, typer.Argument(metavar="ID", help="Conversation id or prefix.")],
    *,
    to: Annotated[int, typer.Option("--to", help="Go back to behind this event.", min=0, metavar="SEQ")],
    files: Annotated[bool, typer.Option("--files", help="Bring the files back too, from the last checkpoint.")] = False,
    home: Home = None,
    debug: Debug = False,
) -> None:
    """Take a conversation back to an earlier point; `agentcore log show` has the numbers. The log keeps everything.

    Files stay as they are without --files. With it, what is there now is saved first.
    """
    execute(
        lambda: rewind.rewind_conversation(conversation, settings.read_settings(home=home), to=to, files=files), debug
    )
