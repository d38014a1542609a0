"""What is run."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated

from pydantic import Field

from agentcore.tools import Action

__all__ = ["RunAction"]


class RunAction(Action):
    """A program, or a script, and what it is given."""

    command: Annotated[str, Field(min_length=1)] | Annotated[tuple[str, ...], Field(min_length=1)]
    """A script for bash in one line or several; or a program and its arguments as a list, which no shell reads."""
    cwd: str | None = None
    """The folder to run it in; a relative path starts in the workspace. Without it, that is the workspace's folder."""
    env: tuple[Annotated[str, Field(pattern="^[^=]+=")], ...] | None = None
    """Variables to add to its environment, each as `NAME=value`."""
    stdin: str | None = None
    """What it can read from its standard input; without it, that is empty."""
    timeout: Annotated[float, Field(ge=0.001)] | None = None
    """After so many seconds it is ended, with all that it started."""
