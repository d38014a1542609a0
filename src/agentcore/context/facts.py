"""The facts of a workspace and the day, as sources of context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import anyio

from agentcore.context.source import ContextPart, Happened, OpenSource, ReadSource, SourceContext, SourceSpec
from agentcore.errors import WorkspaceError

_SECONDS: Final = 5.0
_MOST_OF_A_LINE: Final = 200

# One script, because each command is a round trip to a container or another machine.
_SCRIPT: Final = r"""
uname -sm
echo "${SHELL##*/}"
unset $(git rev-parse --local-env-vars 2>/dev/null)
[ "$(git rev-parse --is-inside-work-tree 2>/dev/null)" = true ] || exit 0
echo git
git symbolic-ref --quiet --short HEAD
exit 0
"""


@dataclass(frozen=True)
class WorkspaceFacts:
    """The system, the shell and the branch: `AgentContext(facts=True)`."""

    name: str = "facts"

    async def open(self, context: SourceContext) -> OpenSource:
        """Ask the workspace; where that fails or takes long, nothing is shown."""
        lines: list[str] = []
        try:
            with anyio.move_on_after(_SECONDS):
                result = await context.workspace.run(["bash", "-c", _SCRIPT], max_output=4096)
                lines = [line.strip()[:_MOST_OF_A_LINE] for line in context.mask(result.stdout).splitlines()]
        except (WorkspaceError, OSError):
            return ReadSource()
        if len(lines) < 2 or not lines[0]:
            return ReadSource()
        shell = f", the user's shell is {lines[1]}" if lines[1] else ""
        git = "It is not a git repository."
        if lines[2:3] == ["git"]:
            branch = f"on the branch {lines[3]}" if len(lines) > 3 else "on no branch"
            git = f"It is a git repository, {branch}."
        return ReadSource([ContextPart("facts", f"The system is {lines[0]}{shell}. {git}")])

    def record(self) -> SourceSpec | None:
        """Return nothing: the context records its flag."""
        return None


def _now() -> datetime:
    return datetime.now().astimezone()


@dataclass(frozen=True)
class Today:
    """The day, where the program runs: `AgentContext(date=True)`. Never the hour, which would be another one in each prompt."""

    now: Callable[[], datetime] = field(default=_now, repr=False)
    name: str = "date"

    async def open(self, context: SourceContext) -> OpenSource:  # noqa: ARG002 the day is the same everywhere
        """Read the clock."""
        return _Day(self.now)

    def record(self) -> SourceSpec | None:
        """Return nothing: the context records its flag."""
        return None


class _Day:
    problems = ()

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.parts = (self._part(),)

    async def follow(self, happened: Happened) -> Sequence[ContextPart]:
        return (self._part(),) if happened.messages else ()

    def _part(self) -> ContextPart:
        now = self._now()
        # Not by strftime, which may speak the language of the place.
        return ContextPart("date", f"Today is {_DAYS[now.weekday()]}, {now:%Y-%m-%d}.")


_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
