"""How a program that is run, and what came of it, is shown to people."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from agentcore.display import CommandBlock, DisplayBlock, MarkdownBlock, code_span
from agentcore_tools._display import heading, others
from agentcore_tools.run.action import RunAction
from agentcore_tools.run.observation import RunObservation

__all__ = ["show_answer", "show_call"]


def show_call(action: RunAction) -> Sequence[DisplayBlock]:
    """Show a program as one would type it; what else was asked stands before it."""
    return (*heading(others(action, "command")), CommandBlock(command=_typed(action)))


def show_answer(action: RunAction, observation: RunObservation) -> Sequence[DisplayBlock]:
    """Show what it wrote, how it ended, and where the whole of a long output is."""
    command = CommandBlock(command=_typed(action), exit_code=observation.exit_code, output=observation.written)
    places = (("output", observation.stdout_path), ("errors", observation.stderr_path))
    kept = [MarkdownBlock(text=f"all of its {what}: {code_span(path)}") for what, path in places if path is not None]
    return (command, *heading(_state(observation)), *kept)


def _state(observation: RunObservation) -> str:
    """Return how it ended, where that is more than an exit code."""
    if observation.problem is not None:
        return "cut off: how it ended is not known"
    ended = f"exit code {observation.exit_code} ({observation.signal})" if observation.signal else ""
    if not observation.timed_out:
        return ended
    return ", ".join(filter(None, ("took too long and was ended", ended)))


def _typed(action: RunAction) -> str:
    command = action.command
    return command if isinstance(command, str) else " ".join(map(_quoted, command))


def _quoted(word: str) -> str:
    """Quote a word for a shell, with the quotation marks that can be read best."""
    if "'" in word and not set(word) & set('"$`\\!\n'):
        return f'"{word}"'
    return shlex.quote(word)
