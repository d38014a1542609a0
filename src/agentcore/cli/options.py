"""The parts that all commands share: their common options, and the way into the process that runs them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks, and log to standard error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON Lines, for programs.")]


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
