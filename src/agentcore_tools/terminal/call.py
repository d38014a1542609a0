"""A call of the terminal: its arguments, its answer, and how people see both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from agentcore.display import CommandBlock, DisplayBlock, MarkdownBlock, code_span
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Observation
from agentcore_tools._calls import heading, others
from agentcore_tools.terminal.input import key_name


class TerminalAction(Action):
    """A command, something to type, or a look at what runs."""

    command: str
    """The command for bash, in one line or several. Empty: wait for the running command, and see its new output. With
    is_input: text to type into it, followed by Enter, or one key: C-c, C-d, C-z (any letter), ENTER, TAB, ESC, BS, UP, DOWN,
    LEFT, RIGHT, HOME, END, PGUP, PGDN."""
    is_input: bool = False
    """Type the command into the program that runs, instead of running it."""
    enter: bool | None = None
    """With is_input: false types the text without Enter; true types it with Enter, also a word that is the name of a key."""
    timeout: Annotated[float, Field(ge=0)] | None = None
    """Answer after so many seconds at the latest, with what there is; the command runs on. Without it, the answer comes when
    nothing new was written for a while."""
    session: Annotated[str, Field(min_length=1, max_length=64)] = "default"
    """Which shell. Each name is one of its own, started when it is first used: keep a server running in one, and work in
    another."""
    reset: bool = False
    """End the shell with all that runs in it, and start a new one first."""


class TerminalObservation(Observation):
    """The output since the last answer, and the state of the session."""

    text: str
    """The output as a terminal would show it; of a long output the beginning and the end."""
    exit_code: int | None = None
    """Of the command, if it has ended; of the shell, if that has."""
    commands: int = 1
    """How many commands stood one behind the other in what has ended, as far as that is known. The exit code is that of the last."""
    running: bool = False
    """True while a command runs."""
    timed_out: Literal["quiet", "limit"] | None = None
    """Why the answer came before the end: nothing new was written for a while, or the call's `timeout` was over."""
    waited: float | None = None
    """After how many seconds that was: of silence, or of the call."""
    waits_for_input: bool = False
    """True if the command waits for input: it sleeps while it reads the terminal."""
    pressed: str | None = None
    """The key that was pressed, where its name may have been meant as a word to type."""
    problem: Literal["still_running", "nothing_running", "stopped", "cut_off", "nothing_lost"] | None = None
    """Why nothing was done: a command while another one runs, or input and a look when none does.

    Or that the shell itself is stopped, as by `suspend`. Or what a crash did: a command was cut off, so that how it ended is not known; a mere look was, and nothing is lost.
    """
    new_shell: bool = False
    """True if this shell replaced the one of the command before, so that all that was set in that one is lost."""
    shell_ended: bool = False
    """True if the shell itself has ended; the next command gets a new one."""
    ended_by: Literal["exit", "set -e"] | None = None
    """Why the shell has ended, where that is known: the command was `exit`, or `set -e` was on and a command failed."""
    killed_because: str | None = None
    """Why the command, or the shell, was killed, where the workspace knows: a sentence."""
    cwd: str | None = None
    """The shell's working directory, where it is known: when a command has ended."""
    python: str | None = None
    """The Python that a command would find, where it is known and differs from the one in the session's answer before."""
    session: str = "default"
    """The name of the session."""
    full_output_path: str | None = None
    """Where the whole of a long output is, in the workspace."""

    @property
    def is_error(self) -> bool:
        """True if the command failed, or was not run."""
        return self.problem not in {None, "nothing_lost"} or bool(self.exit_code)

    def to_content(self) -> Sequence[str | ResultBlock]:
        written = self.text.removesuffix("\n")
        if not written and not self.running and self.problem is None and self.exit_code is not None:
            written = "(no output)"
        before = (
            "[This is a new shell. The variables, functions, working directory and jobs of the one before are gone.]"
            if self.new_shell
            else ""
        )
        pressed = f"[Pressed the key {self.pressed}. To type this word, add enter=true.]" if self.pressed else ""
        return ("\n".join(part for part in (before, written, pressed, self._standing(), self.killed_because) if part),)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the state; the text is in the content already."""
        return self.model_dump(mode="json", exclude={"text"})

    def _standing(self) -> str:
        if self.problem is not None:
            kept = f" Its output until then: {self.full_output_path}." if self.full_output_path else ""
            return f"[{_PROBLEM_TEXTS[self.problem]}{kept if self.problem == 'cut_off' else ''}]"
        if self.running:
            return f"[{self._why_running()}]"
        if self.shell_ended:
            return f"[{self._why_shell_ended()} The next command starts a new shell.]"
        if self.exit_code is None:
            return ""
        where = f"; in {self.cwd}" if self.cwd else ""
        python = f"; python is {self.python}" if self.python else ""
        session = "" if self.session == "default" else f"; session {self.session}"
        which = f", of the last of {self.commands} commands" if self.commands > 1 else ""
        return f"[exit code {self.exit_code}{which}{where}{python}{session}]"

    def _why_running(self) -> str:
        if self.waits_for_input:
            return "Waiting for input. Type it with is_input, or interrupt with C-c."
        waited = "" if self.waited is None else f"{self.waited:g} s"
        if self.timed_out == "limit":
            return f"Still running after {waited or 'its timeout'}."
        return f"Still running; no output for {waited or 'a while'}."

    def _why_shell_ended(self) -> str:
        if self.ended_by == "exit":
            return f"The shell exited as asked (code {self.exit_code})."
        because = ", because `set -e` is on and a command failed" if self.ended_by == "set -e" else ""
        return f"The shell exited with code {self.exit_code}{because}."


_PROBLEM_TEXTS: Final = {
    "still_running": (
        "Not run: the previous command is still running. Wait with an empty command, type with is_input (C-c interrupts), or "
        "use another session."
    ),
    "nothing_running": "Nothing is running, so there is nothing to wait for or to type into. Give a command.",
    "stopped": "The shell is stopped (by `suspend` or a signal), so nothing runs in it. reset starts a new shell.",
    "nothing_lost": "The process that ran this ended while it waited. Nothing is lost by that.",
    "cut_off": (
        "The process that ran this ended before the end of the command was reported, and the shell with it. How the command ended "
        "is not known: check before you do it again."
    ),
}
_PROBLEMS: Final = {
    "still_running": "not run: the command before it still runs",
    "nothing_running": "nothing is running",
    "stopped": "the shell is stopped",
    "cut_off": "cut off: how it ended is not known",
    "nothing_lost": "cut off while it waited: nothing is lost by that",
}


def show_call(action: TerminalAction) -> Sequence[DisplayBlock]:
    """Show a command as at a prompt; what else was asked stands before it, where it cannot be taken for a part of it."""
    rest = others(action, "command", "is_input")
    if action.is_input:
        key = key_name(action.command) if action.enter is None else None
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
    if observation.waits_for_input:
        return "waits for input"
    if observation.running:
        return "still running"
    ended = "" if observation.exit_code is None else f"exit code {observation.exit_code}, "
    if observation.shell_ended:
        return f"{ended}and the shell has ended"
    if observation.new_shell:
        return f"{ended}in a new shell" if ended else "what was in the one before is gone"
    return ""
