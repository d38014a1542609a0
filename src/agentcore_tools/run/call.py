"""A call of the tool `run`: its arguments, its answer, and how people see both."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import shlex
import signal
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from agentcore.display import CommandBlock, DisplayBlock, MarkdownBlock, code_span
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Observation
from agentcore_tools._display import heading, others

# No postponed annotations: pydantic would evaluate each of them again, at every import.


class RunAction(Action):
    """A program, or a script, and what it is given."""

    command: Annotated[str, Field(min_length=1)] | Annotated[tuple[str, ...], Field(min_length=1)]
    """A script for bash in one line or several; or a program and its arguments as a list, which no shell reads."""
    cwd: str | None = None
    """The folder to run it in; a relative path starts in the workspace. Without it, that is the workspace's folder."""
    env: tuple[Annotated[str, Field(pattern="^[^=]+=")], ...] | None = None
    """Variables to add to its environment, each as `NAME=value`."""
    stdin: str | None = None
    """The text for its standard input; without it, that is empty."""
    timeout: Annotated[float, Field(ge=0.001)] | None = None
    """After so many seconds it is ended, with all that it started."""


# No postponed annotations: pydantic would evaluate each of them again, at every import.


class RunObservation(Observation):
    """The output and the errors of a program, apart, and how it ended."""

    stdout: str = ""
    """Its standard output; of a long one the beginning and the end."""
    stderr: str = ""
    """Its standard error; of a long one the beginning and the end."""
    exit_code: int | None = None
    """0 to 255; 128 and the signal's number where a signal ended it. None where it is not known."""
    signal: str | None = None
    """The name of the signal that the exit code stands for, as `SIGKILL`."""
    timed_out: bool = False
    """True if it took too long and was killed."""
    seconds: float = 0.0
    """How long it ran."""
    stdout_path: str | None = None
    """Where the whole of a long output is, in the workspace."""
    stderr_path: str | None = None
    """Where the whole of long errors is, in the workspace."""
    problem: Literal["cut_off"] | None = None
    """Why nothing is known of its end: the process that ran it ended first."""

    @property
    def is_error(self) -> bool:
        """True if it failed, or did not come to its end."""
        return self.timed_out or self.exit_code != 0

    def to_content(self) -> Sequence[str | ResultBlock]:
        nothing = "(no output)" if self.problem is None and not self.stdout and not self.stderr else ""
        return ("\n".join(part for part in (self.written, nothing, self._end()) if part),)

    @property
    def written(self) -> str:
        """All that it wrote, its errors below its output."""
        errors = f"[Standard error:]\n{self.stderr.removesuffix(chr(10))}" if self.stderr else ""
        return "\n".join(part for part in (self.stdout.removesuffix("\n"), errors) if part)

    def to_data(self) -> dict[str, JsonValue]:
        """Return how it ended; its output is in the content already."""
        return self.model_dump(mode="json", exclude={"stdout", "stderr"})

    def _end(self) -> str:
        if self.problem == "cut_off":
            kept = [path for path in (self.stdout_path, self.stderr_path) if path]
            where = f" What it had written by then is in {' and '.join(kept)}." if kept else ""
            return (
                "[The process that ran this ended first. How it ended is not known: look before you do it again."
                f"{where}]"
            )
        if self.timed_out:
            return f"[It had not ended after {self.seconds:.1f} s, and was ended with all that it had started.]"
        named = f", that of {self.signal}" if self.signal else ""
        return f"[exit code {self.exit_code}{named}; {self.seconds:.1f} s]"


def signal_of(exit_code: int) -> str | None:
    """Name the signal that an exit code stands for."""
    try:
        return signal.Signals(exit_code - 128).name if exit_code > 128 else None
    except ValueError:
        return None


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
