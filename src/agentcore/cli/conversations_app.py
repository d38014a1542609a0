"""The commands of `agentcore conversations`, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentcore.cli.options import AsJson, Debug, Home, Later, execute

if TYPE_CHECKING:
    from agentcore.cli import conversations, settings
else:
    conversations, settings = map(Later, ("conversations", "settings"))

conversations_app = typer.Typer()


@conversations_app.callback(invoke_without_command=True)
def conversations_command(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many to list; 0 for all.", min=0, metavar="N")] = 20,
    home: Home = None,
    json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the conversations, newest first."""
    if context.invoked_subcommand is not None:
        context.obj = home
        return
    execute(lambda: conversations.list_conversations(settings.read_settings(home=home), limit=limit, json=json), debug)


@conversations_app.command("delete", short_help="Delete a conversation.")
def delete_command(
    context: typer.Context,
    conversation: Annotated[str, typer.Argument(metavar="ID", help="Conversation id or prefix.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    home: Home = None,
    debug: Debug = False,
) -> None:
    """Delete a conversation: its log, and the full outputs it kept outside the project. The project is not touched."""
    execute(
        lambda: conversations.delete_conversation(
            conversation, settings.read_settings(home=home or context.obj), yes=yes
        ),
        debug,
    )
