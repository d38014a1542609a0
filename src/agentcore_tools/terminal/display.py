"""How calls of the terminal, and what came of them, are shown to people: without the words that are there for the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentcore.display import CommandBlock, DisplayBlock, MarkdownBlock, code_span
from agentcore_tools._display import heading, others
from agentcore_tools.terminal.action import TerminalAction
from agentcore_tools.terminal.keys import key_name
from agentcore_tools.terminal.observation import TerminalObservation

__all__ = ["show_answer", "show_call"]

_PROBLEMS: Final = {
    "still_running": "not run: the command before it still runs",
    "nothing_running": "nothing is running",
    "cut_off": "cut off: how it ended is not known",
    "nothing_lost": "cut off while it waited: nothing is lost by that",
}


def show_call(action: TerminalAction) -> Sequence[DisplayBlock]:
    """Show a command as at a prompt; what else was asked stands before it, where it cannot be taken for a part of it."""
    rest = others(action, "command", "is_input")
    if action.is_input:
        key = key_name(action.command)
        return heading(rest, f"types {code_span(action.command)}" if key is None else f"presses {code_span(key)}")
    if action.command:
        return (*heading(rest), CommandBlock(command=action.command))
    if action.reset:
        return heading(others(action, "command", "is_input", "reset"), "starts a new shell")
    return heading(rest, "waits on")


def show_answer(action: TerminalAction, observation: TerminalObservation) -> Sequence[DisplayBlock]:
    """Show what was written, how things stand, and where the whole of a long output is."""
    command = CommandBlock(
        command=action.command, exit_code=observation.exit_code, output=observation.text.removesuffix("\n")
    )
    whole = observation.full_output_path
    kept = () if whole is None else (MarkdownBlock(text=f"all of it: {code_span(whole)}"),)
    return (command, *heading(_state(observation)), *kept)


def _state(observation: TerminalObservation) -> str:
    """Return how things stand, where that is more than an exit code."""
    if observation.problem is not None:
        return _PROBLEMS[observation.problem]
    if observation.running:
        return "still running"
    ended = "" if observation.exit_code is None else f"exit code {observation.exit_code}, "
    if observation.shell_ended:
        return f"{ended}and the shell has ended"
    if observation.new_shell:
        return f"{ended}in a new shell" if ended else "what was in the one before is gone"
    return ""
