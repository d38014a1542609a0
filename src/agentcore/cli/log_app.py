"""The commands of `agentcore log`, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentcore.cli.options import Debug, GivenId, Home, Later, execute

if TYPE_CHECKING:
    from agentcore.cli import export, log, settings
else:
    export, log, settings = map(Later, ("export", "log", "settings"))

log_app = typer.Typer(help="Show, verify, export and repair logs.", no_args_is_help=True)


@log_app.command("show", short_help="Show what happened.")
def show_command(
    *,
    conversation: GivenId = None,
    after: Annotated[int, typer.Option(help="Only events after this one.", min=0, metavar="SEQ")] = 0,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", "-k", help="Only this kind of event; can be repeated.", metavar="KIND"),
    ] = None,
    whole: Annotated[bool, typer.Option("--all", "-a", help="Show everything in full.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing as the log grows.")] = False,
    home: Home = None,
    debug: Debug = False,
) -> None:
    """Show what happened; without an ID, in the last changed conversation.

    With a pager and colours: FORCE_COLOR=1 agentcore log show ID | less -R
    """
    execute(
        lambda: log.show_log(
            conversation,
            settings.read_settings(home=home),
            after=after,
            kinds=kind or (),
            whole=whole,
            follow=follow,
        ),
        debug,
    )


@log_app.command("export", short_help="Export a log.")
def export_command(
    *,
    conversation: GivenId = None,
    form: Annotated[
        Literal["jsonl", "markdown"] | None,
        typer.Option("--format", help="jsonl, unless the file name ends in .md."),
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write to this file.", metavar="FILE")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    home: Home = None,
    debug: Debug = False,
) -> None:
    """Export a log to standard output or a file: all events as JSON Lines, or a report as Markdown.

    Without an ID, the last changed conversation is exported.
    """
    execute(
        lambda: export.export_log(
            conversation, settings.read_settings(home=home), form=form, output=output, force=force
        ),
        debug,
    )


@log_app.command("verify", short_help="Verify a log.")
def verify_command(*, conversation: GivenId = None, home: Home = None, debug: Debug = False) -> None:
    """Verify that a log is intact; without an ID, that of the last changed conversation.

    The exit code is 0 if it is intact, 1 if it is damaged, 3 if its end is incomplete.
    """
    execute(lambda: log.verify_log(conversation, settings.read_settings(home=home)), debug)


@log_app.command("repair", short_help="Repair a damaged log.")
def repair_command(
    conversation: Annotated[str, typer.Argument(metavar="ID", help="Conversation id or prefix.")],
    *,
    home: Home = None,
    debug: Debug = False,
) -> None:
    """Truncate a damaged log to its intact part. A backup is kept beside it."""
    execute(lambda: log.repair_log(conversation, settings.read_settings(home=home)), debug)
