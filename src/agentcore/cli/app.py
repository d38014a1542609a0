"""The commands and their options. Importing this module imports typer but not the runtime, so that `--help` is quick."""

from __future__ import annotations

import os
import shlex
import sys
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from agentcore.cli.conversations_app import conversations_app
from agentcore.cli.keys_app import keys_app
from agentcore.cli.log_app import log_app
from agentcore.cli.mcp_app import MCPFile, NoMCP, mcp_app
from agentcore.cli.options import (
    CONTEXT,
    LIMITS,
    MODEL,
    AsJson,
    BaseUrl,
    Debug,
    GivenId,
    GroupedCommand,
    Home,
    Later,
    Model,
    NoMemory,
    NoProjectFiles,
    NoSkills,
    Verbose,
    Workspace,
    execute,
)
from agentcore.cli.sandbox_app import Checkpoints, Network, Sandbox, SandboxImage, rewind_command, sandbox_app
from agentcore.cli.serve_app import serve_command
from agentcore.cli.skills_app import skills_app
from agentcore.errors import UnsupportedPlatform

if TYPE_CHECKING:
    from agentcore.cli import condense, demo, run, settings
else:
    condense, demo, run, settings = map(Later, ("condense", "demo", "run", "settings"))


class _Commands(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; for words that are a task rather than a misspelt command, suggest `run`."""
        word = args[0]
        is_task = " " in word or (len(args) > 1 and not get_close_matches(word, self.commands))
        if is_task and not word.startswith("-") and self.get_command(ctx, word) is None:
            ctx.fail(f"No such command {word!r}. To give an agent this task: {ctx.command_path} run {shlex.join(args)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="agentcore",
    cls=_Commands,
    help="Run coding agents in a folder and inspect what they did.",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with local variables would show keys and file contents.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(conversations_app, name="conversations", short_help="List and delete conversations.")
app.add_typer(log_app, name="log")
app.add_typer(skills_app, name="skills")
app.add_typer(mcp_app, name="mcp")
app.add_typer(keys_app, name="keys")
app.add_typer(sandbox_app, name="sandbox")
app.command("rewind", short_help="Go back to an earlier point.")(rewind_command)
app.command("serve", cls=GroupedCommand, short_help="Serve conversations to other programs.")(serve_command)


def main() -> None:
    """Run the command line."""
    if sys.platform == "win32":
        typer.echo(f"error: {UnsupportedPlatform('Windows')}", err=True)
        sys.exit(1)
    app(prog_name="agentcore")


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


def _named(**chosen: bool) -> set[str]:
    return {name for name, is_chosen in chosen.items() if is_chosen}


Confirm = Annotated[
    Literal["never", "always", "risky"] | None,
    typer.Option(help="Which tool calls need approval.", rich_help_panel=LIMITS),
]
MaxCost = Annotated[
    dict[str, Any] | None,
    typer.Option(
        help='Stop when the conversation has cost this many US dollars; "none" removes the limit.',
        parser=parse_dollars,
        metavar="DOLLARS",
        rich_help_panel=LIMITS,
    ),
]
MaxSteps = Annotated[
    dict[str, Any] | None,
    typer.Option(
        help='Stop after this many model calls (500); "none" removes the limit.',
        parser=parse_steps,
        metavar="N",
        rich_help_panel=LIMITS,
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(help="How often a failed model call is retried (5).", min=0, metavar="N", rich_help_panel=MODEL),
]
Images = Annotated[
    list[str] | None,
    typer.Option("--image", help="Picture or PDF to send along; can be repeated.", metavar="FILE"),
]
_CONDENSERS = ("summary", "masking", "window", "none")


def check_condenser(name: str) -> str:
    """Return the name of a condenser.

    Raises:
        typer.BadParameter: There is none of that name.
    """
    if name not in _CONDENSERS:
        close = get_close_matches(name, _CONDENSERS, n=1)
        listed = ", ".join(map(repr, _CONDENSERS))
        raise typer.BadParameter(f"{name!r} is not one of {listed}.{f' Did you mean {close[0]!r}?' if close else ''}")
    return name


Condenser = Annotated[
    str,
    typer.Option(
        metavar="<summary|masking|window|none>",
        callback=check_condenser,
        help="How a history that grows large is made shorter: by a summary that the model writes, by leaving out the content of old "
        "answers, by forgetting the oldest part, or not at all.",
        rich_help_panel=CONTEXT,
    ),
]


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
    """Run coding agents in a folder and inspect what they did."""


@app.command("demo", short_help="Watch an agent work, offline.")
def demo_command(*, home: Home = None, verbose: Verbose = False, debug: Debug = False) -> None:
    """Watch an agent fix a small project: offline, with a scripted model and real tools."""
    execute(lambda: demo.show_demo(settings.check_writable(settings.read_settings(home=home)), verbose=verbose), debug)


@app.command("run", cls=GroupedCommand, short_help="Give an agent a task.")
def run_command(
    task: Annotated[
        list[str],
        typer.Argument(metavar="TASK", help='The task, in any number of words; "-" reads it from standard input.'),
    ],
    *,
    model: Model = None,
    base_url: BaseUrl = None,
    workspace: Annotated[str, typer.Option("--workspace", "-w", help="Folder to work in.", metavar="FOLDER")] = ".",
    system_prompt: Annotated[
        str | None,
        typer.Option(
            help="Replace the system prompt by this text, or by that of a file.",
            metavar="TEXT|@FILE",
            rich_help_panel=CONTEXT,
        ),
    ] = None,
    tools: Annotated[
        Literal["coding", "readonly", "planning"],
        typer.Option(help="What the agent may use; planning writes PLAN.md only."),
    ] = "coding",
    no_project_files: NoProjectFiles = False,
    no_memory: NoMemory = False,
    no_skills: NoSkills = False,
    mcp: MCPFile = None,
    no_mcp: NoMCP = False,
    condenser: Condenser = "summary",
    images: Images = None,
    sandbox: Sandbox = None,
    network: Network = None,
    sandbox_image: SandboxImage = None,
    checkpoints: Checkpoints = False,
    confirm: Confirm = None,
    max_cost: MaxCost = None,
    max_steps: MaxSteps = None,
    retries: Retries = None,
    conversation_id: Annotated[
        str | None, typer.Option("--id", help="Id of the new conversation.", metavar="ID")
    ] = None,
    home: Home = None,
    json: AsJson = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Run an agent on a task and watch it work.

    The key comes from the provider's variable, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or from AGENTCORE_API_KEY.

    Ctrl-C interrupts the run and saves everything, so that `agentcore resume` can continue; a second Ctrl-C quits at once.
    """
    execute(
        lambda: run.run_task(
            " ".join(task),
            settings.check_writable(settings.read_settings(home=home, model=model, base_url=base_url, confirm=confirm)),
            workspace=os.path.abspath(workspace),
            system_prompt=system_prompt,
            tools=tools,
            without=_named(project_files=no_project_files, memory=no_memory, skills=no_skills, mcp=no_mcp),
            mcp=mcp or (),
            condenser=condenser,
            images=images or (),
            limits={**(max_cost or {}), **(max_steps or {})},
            retries=retries,
            conversation_id=conversation_id,
            sandbox=(sandbox, network, sandbox_image),
            checkpoints=checkpoints,
            json=json,
            verbose=verbose,
        ),
        debug,
    )


@app.command("resume", cls=GroupedCommand, short_help="Resume a conversation.")
def resume_command(
    *,
    conversation: GivenId = None,
    message: Annotated[
        list[str] | None, typer.Argument(metavar="MESSAGE", help='Message; "-" reads it from standard input.')
    ] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    workspace: Workspace = None,
    confirm: Confirm = None,
    approve: Annotated[bool, typer.Option("--approve", help="Approve all waiting calls.")] = False,
    reject: Annotated[str | None, typer.Option(help="Reject all waiting calls.", metavar="REASON")] = None,
    no_project_files: NoProjectFiles = False,
    no_memory: NoMemory = False,
    no_skills: NoSkills = False,
    mcp: MCPFile = None,
    no_mcp: NoMCP = False,
    answer: Annotated[
        list[str] | None,
        typer.Option("--answer", help="Answer a waiting question; repeat it for several, in order.", metavar="TEXT"),
    ] = None,
    images: Images = None,
    max_cost: MaxCost = None,
    max_steps: MaxSteps = None,
    sandbox: Sandbox = None,
    network: Network = None,
    sandbox_image: SandboxImage = None,
    retries: Retries = None,
    home: Home = None,
    json: AsJson = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Resume a conversation that was interrupted, crashed, is waiting for approval, or is finished.

    Without an ID, the last changed conversation is resumed; `agentcore resume "and now the docs"` sends it a message: text
    with a space is a message, one word is an id. Waiting calls are shown for approval.
    """
    if approve and reject is not None:
        raise typer.BadParameter("Use --approve or --reject, not both.")
    execute(
        lambda: run.resume_conversation(
            conversation,
            " ".join(message) if message else None,
            settings.check_writable(settings.read_settings(home=home, model=model, base_url=base_url)),
            workspace=None if workspace is None else os.path.abspath(workspace),
            model=model,
            base_url=base_url,
            confirm=confirm,
            approve=approve,
            reject=reject,
            without=_named(project_files=no_project_files, memory=no_memory, skills=no_skills, mcp=no_mcp),
            mcp=mcp or (),
            answers=answer or (),
            images=images or (),
            limits={**(max_cost or {}), **(max_steps or {})},
            retries=retries,
            sandbox=(sandbox, network, sandbox_image),
            json=json,
            verbose=verbose,
        ),
        debug,
    )


@app.command("condense", cls=GroupedCommand, short_help="Make a long history shorter.")
def condense_command(
    *,
    conversation: GivenId = None,
    model: Model = None,
    base_url: BaseUrl = None,
    workspace: Workspace = None,
    sandbox: Sandbox = None,
    network: Network = None,
    sandbox_image: SandboxImage = None,
    retries: Retries = None,
    home: Home = None,
    json: AsJson = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Make the history that the model of a conversation is shown shorter, now, and say what that freed and what it cost.

    It happens by itself when the history grows large. Without an ID, the last changed conversation is meant. The log keeps
    everything. The exit code is 0, also where nothing could be left out.
    """
    execute(
        lambda: condense.condense_conversation(
            conversation,
            settings.check_writable(settings.read_settings(home=home, model=model, base_url=base_url)),
            workspace=None if workspace is None else os.path.abspath(workspace),
            model=model,
            base_url=base_url,
            retries=retries,
            sandbox=(sandbox, network, sandbox_image),
            json=json,
            verbose=verbose,
        ),
        debug,
    )
