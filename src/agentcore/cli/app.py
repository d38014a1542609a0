"""The commands and their options. Above: nothing. What a command needs is imported when it is called.

Importing this file imports typer and nothing of agentcore's runtime, so that `--help` is there at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine
from decimal import Decimal, InvalidOperation
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from agentcore.errors import UnsupportedPlatform

if TYPE_CHECKING:
    from agentcore.cli import conversations, demo, export, log, run, settings
else:

    class _Later:
        """A module that is imported on first use, so that `--help` does not pay for what a command needs."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(f"agentcore.cli.{self._name}"), name)

    conversations, demo, export, log, run, settings = map(
        _Later, ("conversations", "demo", "export", "log", "run", "settings")
    )

app = typer.Typer(
    name="agentcore",
    help="Run software agents in a folder of yours, and read what they did.",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with local variables would show keys and file contents.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
log_app = typer.Typer(help="Read, check and mend logs.", no_args_is_help=True)
app.add_typer(log_app, name="log")


def main() -> None:
    """Run the command line."""
    if sys.platform == "win32":
        typer.echo(f"error: {UnsupportedPlatform('Windows')}", err=True)
        sys.exit(1)
    app(prog_name="agentcore")


def _execute(command: Callable[[], Coroutine[Any, Any, int]], debug: bool) -> NoReturn:
    import_module("agentcore.cli.process").execute(command, debug=debug)
    raise AssertionError("execute() leaves the process")


def parse_dollars(text: str) -> dict[str, Decimal | None]:
    """Parse --max-cost into the limit that it changes.

    Raises:
        typer.BadParameter: It is neither an amount nor "none".
    """
    if text.lower() == "none":
        return {"cost": None}
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise typer.BadParameter("Must be an amount of dollars, as in 2.50, or 'none'.")
    return {"cost": amount}


def parse_steps(text: str) -> dict[str, int | None]:
    """Parse --max-steps into the limit that it changes.

    Raises:
        typer.BadParameter: It is neither a whole number of at least 1 nor "none".
    """
    if text.lower() == "none":
        return {"steps": None}
    if not (text.isdecimal() and int(text)):
        raise typer.BadParameter("Must be a whole number of at least 1, or 'none'.")
    return {"steps": int(text)}


Home = Annotated[
    str | None, typer.Option(help="Keep conversations in this folder (or AGENTCORE_HOME).", metavar="FOLDER")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks, and what happens inside on standard error.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show everything: whole output, thinking, bookkeeping.")]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="Provider and model, as in openai/gpt-5 (or AGENTCORE_MODEL).", metavar="NAME"),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Where the model is, if not at its provider (or AGENTCORE_BASE_URL).", metavar="URL"),
]
Confirm = Annotated[
    Literal["never", "always", "risky"] | None, typer.Option(help="Which calls wait for a yes from you.")
]
MaxCost = Annotated[
    dict[str, Any] | None,
    typer.Option(
        help='Stop when the conversation has cost so many US dollars; "none" lifts it.',
        parser=parse_dollars,
        metavar="DOLLARS",
    ),
]
MaxSteps = Annotated[
    dict[str, Any] | None,
    typer.Option(help='Stop after so many model calls (500); "none" lifts it.', parser=parse_steps, metavar="N"),
]
Retries = Annotated[
    int | None, typer.Option(help="How often a failed model call is tried again (5).", min=0, metavar="N")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON Lines, for programs.")]
GivenId = Annotated[str | None, typer.Argument(metavar="ID", help="The conversation, or how its id begins.")]


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        typer.echo(f"agentcore {version('agentcore-runtime')}")
    except PackageNotFoundError:
        typer.echo("agentcore (from its sources, not installed)")
    raise typer.Exit


@app.callback()
def start(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run software agents in a folder of yours, and read what they did."""


@app.command("demo", short_help="Watch an agent at work, offline.")
def demo_command(*, home: Home = None, verbose: Verbose = False, debug: Debug = False) -> None:
    """Watch an agent mend a small project: offline, with a scripted model and real tools."""
    _execute(lambda: demo.show_demo(settings.to_write(settings.read_settings(home=home)), verbose=verbose), debug)


@app.command("run", short_help="Give an agent a task.")
def run_command(
    task: Annotated[str, typer.Argument(metavar="TASK", help='What to do; "-" reads it from standard input.')],
    *,
    model: Model = None,
    base_url: BaseUrl = None,
    workspace: Annotated[str, typer.Option("--workspace", "-w", help="Work in this folder.", metavar="FOLDER")] = ".",
    confirm: Confirm = None,
    max_cost: MaxCost = None,
    max_steps: MaxSteps = None,
    retries: Retries = None,
    conversation_id: Annotated[
        str | None, typer.Option("--id", help="Give the conversation this id.", metavar="ID")
    ] = None,
    home: Home = None,
    json: AsJson = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Give an agent a task, and watch it work.

    The provider's key comes from its own variable, as ANTHROPIC_API_KEY or OPENAI_API_KEY, or from AGENTCORE_API_KEY.

    Ctrl-C interrupts it and keeps everything, so that `agentcore resume` can go on; a second Ctrl-C leaves at once.
    """
    _execute(
        lambda: run.run_task(
            task,
            settings.to_write(settings.read_settings(home=home, model=model, base_url=base_url, confirm=confirm)),
            workspace=os.path.abspath(workspace),
            limits={**(max_cost or {}), **(max_steps or {})},
            retries=retries,
            conversation_id=conversation_id,
            json=json,
            verbose=verbose,
        ),
        debug,
    )


@app.command("resume", short_help="Go on with a conversation.")
def resume_command(
    *,
    conversation: GivenId = None,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help='Something more to say; "-" reads it.')
    ] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", help="Work in this folder from now on.", metavar="FOLDER")
    ] = None,
    confirm: Confirm = None,
    approve: Annotated[bool, typer.Option("--approve", help="Say yes to all calls that wait.")] = False,
    reject: Annotated[str | None, typer.Option(help="Say no to all calls that wait.", metavar="REASON")] = None,
    max_cost: MaxCost = None,
    max_steps: MaxSteps = None,
    retries: Retries = None,
    home: Home = None,
    json: AsJson = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Go on with a conversation: one that was interrupted, crashed, waits for you, or is finished.

    Without an ID it is the one that changed last; `agentcore resume "and now the docs"` says something to it: words
    with a blank in them are a message, one word is an id. Calls that wait for your yes or no are shown and asked about.
    """
    if approve and reject is not None:
        raise typer.BadParameter("Say --approve or --reject, not both.")
    _execute(
        lambda: run.resume_conversation(
            conversation,
            message,
            settings.to_write(settings.read_settings(home=home, model=model, base_url=base_url)),
            workspace=None if workspace is None else os.path.abspath(workspace),
            model=model,
            base_url=base_url,
            confirm=confirm,
            approve=approve,
            reject=reject,
            limits={**(max_cost or {}), **(max_steps or {})},
            retries=retries,
            json=json,
            verbose=verbose,
        ),
        debug,
    )


@app.command("conversations", short_help="List the conversations.")
def conversations_command(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many; 0 for all.", min=0, metavar="N")] = 20,
    home: Home = None,
    json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the conversations, the newest first."""
    _execute(lambda: conversations.list_conversations(settings.read_settings(home=home), limit=limit, json=json), debug)


@log_app.command("show", short_help="Read what happened.")
def show_command(
    *,
    conversation: GivenId = None,
    after: Annotated[int, typer.Option(help="Only what comes after this event.", min=0, metavar="SEQ")] = 0,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", "-k", help="Only this kind of event; may be given several times.", metavar="KIND"),
    ] = None,
    whole: Annotated[bool, typer.Option("--all", "-a", help="Cut nothing.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is being written.")] = False,
    home: Home = None,
    debug: Debug = False,
) -> None:
    """Read what happened, in the conversation that changed last where no ID is given.

    With a pager and colours: FORCE_COLOR=1 agentcore log show ID | less -R
    """
    _execute(
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


@log_app.command("export", short_help="Write a log out.")
def export_command(
    *,
    conversation: GivenId = None,
    form: Annotated[
        Literal["jsonl", "markdown"] | None,
        typer.Option("--format", help="jsonl unless the file is called .md."),
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write to this file.", metavar="FILE")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    home: Home = None,
    debug: Debug = False,
) -> None:
    """Write a log out, to standard output or a file: all events as JSON Lines, or the story as Markdown.

    Without an ID it is that of the conversation that changed last.
    """
    _execute(
        lambda: export.export_log(
            conversation, settings.read_settings(home=home), form=form, output=output, force=force
        ),
        debug,
    )


@log_app.command("verify", short_help="Check that a log is sound.")
def verify_command(*, conversation: GivenId = None, home: Home = None, debug: Debug = False) -> None:
    """Check that a log is what was written; without an ID, that of the conversation that changed last.

    Ends with 0 if it is sound, 1 if it is damaged, 3 if its end is unfinished.
    """
    _execute(lambda: log.verify_log(conversation, settings.read_settings(home=home)), debug)


@log_app.command("repair", short_help="Cut a damaged log back to its sound part.")
def repair_command(
    conversation: Annotated[str, typer.Argument(metavar="ID", help="The conversation, or how its id begins.")],
    *,
    home: Home = None,
    debug: Debug = False,
) -> None:
    """Cut a damaged log back to its sound part. What it was is kept beside it."""
    _execute(lambda: log.repair_log(conversation, settings.read_settings(home=home)), debug)
