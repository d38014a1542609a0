"""What a program wrote, and how it ended."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import signal
from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from agentcore.messages import ResultBlock
from agentcore.tools import Observation

__all__ = ["RunObservation", "signal_of"]


class RunObservation(Observation):
    """What a program wrote, its output and its errors apart, and how it ended."""

    stdout: str = ""
    """Its standard output; of a long one the beginning and the end."""
    stderr: str = ""
    """Its standard error; of a long one the beginning and the end."""
    exit_code: int | None = None
    """0 to 255; 128 and the signal's number where a signal ended it. None where it is not known."""
    signal: str | None = None
    """The name of the signal that the exit code stands for, as `SIGKILL`."""
    timed_out: bool = False
    """Whether it took too long, and was ended."""
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
        """Whether it failed, or did not come to its end."""
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
        """Give how it ended; what it wrote is in the content already."""
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
