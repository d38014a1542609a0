"""Checks: what has a say in whether an action may start.

Above: the conversation, which asks the checks about the calls of each reply, combines what they say and records it. A
policy is a check; so is whatever else analyzes, allows, asks or denies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from agentcore.assessment import Assessment, SecurityRisk, Verdict
from agentcore.events import ActionEvent
from agentcore.record import ConversationState

CHECK_SECONDS: Final = 60.0
"""How long a policy may take that answers later."""


class RatedAction(ActionEvent):
    """An action with the risk that is known of it: what policies and confirmation callbacks are asked about."""

    risk: SecurityRisk = SecurityRisk.UNKNOWN


def rated(action: ActionEvent, risk: SecurityRisk) -> RatedAction:
    """Add the risk to an action."""
    return RatedAction.model_construct(_fields_set=None, **{**dict(action), "risk": risk})


class ToolHints(Protocol):
    """The tool's own word about what it does; `agentcore.tools.ToolAnnotations` has it."""

    @property
    def read_only(self) -> bool:
        """It changes nothing."""
        ...

    @property
    def destructive(self) -> bool:
        """It may overwrite or delete."""
        ...

    @property
    def idempotent(self) -> bool:
        """Doing it twice is doing it once."""
        ...

    @property
    def open_world(self) -> bool:
        """It reaches beyond the workspace."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """The context of a check: all it may look at besides the action."""

    tool: ToolHints
    """The tool's annotations: `read_only`, `destructive`, `idempotent`, `open_world`."""
    workspace_root: str
    """The folder of the workspace."""
    state: ConversationState
    """The conversation up to the request of this reply: to be read, and not to be changed."""
    deps: Any = field(default=None, repr=False)
    """The value that the program passed as `Conversation(deps=...)`."""
    risk: SecurityRisk = SecurityRisk.UNKNOWN
    """The highest risk that the tool and the analyzers have named; unknown where none of them knows."""


Opinion: TypeAlias = Assessment | None
"""The answer of a check; None is no opinion."""


class Check(Protocol):
    """Has a say in whether an action may start. A class of your own meets it by having these three members."""

    @property
    def name(self) -> str:
        """The name under which the log has its opinions."""
        ...

    @property
    def timeout(self) -> float:
        """How many seconds it may take where it is async. A late one counts as one that failed."""
        ...

    def assess(self, action: ActionEvent, context: CheckContext) -> Opinion | Awaitable[Opinion]:
        """Return an opinion about the action, or None: `def`, which must answer at once, or `async def`."""
        ...


class Analyzer(Check, Protocol):
    """A check that finds out the risk. Analyzers are asked first, and the others read what they found."""

    @property
    def is_analyzer(self) -> Literal[True]:
        """Marks it as one. Where an analyzer fails, or is late, the risk is high and a person is asked."""
        ...


_HIGHEST: Final = (SecurityRisk.HIGH, SecurityRisk.MEDIUM, SecurityRisk.LOW)


def combine(parts: Iterable[Assessment]) -> tuple[Verdict, SecurityRisk | None]:
    """Combine opinions about an action: deny before ask before allow, and the highest risk.

    Where no part has a verdict the action is allowed; where none knows the risk it is None.
    """
    parts = tuple(parts)
    verdicts = {part.verdict for part in parts}
    verdict: Verdict = "deny" if "deny" in verdicts else "ask" if "ask" in verdicts else "allow"
    return verdict, highest_risk(parts)


def highest_risk(parts: Iterable[Assessment]) -> SecurityRisk | None:
    """Return the highest risk that one of the parts names."""
    risks = {part.risk for part in parts}
    return next((risk for risk in _HIGHEST if risk in risks), None)
