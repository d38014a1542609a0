"""The parts that all commands share: their common options, and the way into the process that runs them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand

MODEL: Final = "Model"
CONTEXT: Final = "Context"
LIMITS: Final = "Approval and limits"
SECURITY: Final = "Security"
_OTHERS: Final = "Options"


class GroupedCommand(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write each group of options under its heading; those of none come first."""
        groups: dict[str, list[tuple[str, str]]] = {
            "Arguments": [],
            _OTHERS: [],
            MODEL: [],
            CONTEXT: [],
            LIMITS: [],
            SECURITY: [],
        }
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                of_none = "Arguments" if param.param_type_name == "argument" else _OTHERS
                groups[getattr(param, "rich_help_panel", None) or of_none].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks, and log to standard error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON Lines, for programs.")]
Home = Annotated[str | None, typer.Option(help="Folder with the conversations (or AGENTCORE_HOME).", metavar="FOLDER")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show everything: full output, reasoning, bookkeeping.")]
GivenId = Annotated[str | None, typer.Argument(metavar="ID", help="Conversation id or prefix.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Provider and model, as in openai/gpt-5 (or AGENTCORE_MODEL).",
        metavar="NAME",
        rich_help_panel=MODEL,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Address of the model's API (or AGENTCORE_BASE_URL).", metavar="URL", rich_help_panel=MODEL),
]
NoProjectFiles = Annotated[
    bool,
    typer.Option("--no-project-files", help="Do not read AGENTS.md, CLAUDE.md and the like.", rich_help_panel=CONTEXT),
]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="Do not read MEMORY.md.", rich_help_panel=CONTEXT)]
NoSkills = Annotated[bool, typer.Option("--no-skills", help="Do not look for skills.", rich_help_panel=CONTEXT)]
Workspace = Annotated[
    str | None, typer.Option("--workspace", "-w", help="Folder to work in from now on.", metavar="FOLDER")
]


class Later:
    """A module that is imported on first use, so that `--help` does not pay for what a command needs."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"agentcore.cli.{self._name}"), name)


def execute(command: Callable[[], Coroutine[Any, Any, int]], debug: bool) -> NoReturn:
    """Run a command, and leave the process with its exit code."""
    import_module("agentcore.cli.process").execute(command, debug=debug)
    raise AssertionError("execute() leaves the process")
