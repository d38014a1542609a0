"""Assessing the calls of a reply: each check is asked about each of them, before any of them starts.

What checks are and how their opinions combine is said below, in `agentcore.security`; here they are called, awaited,
and bounded. A check that fails, or answers with what is no opinion, never lets an action start.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, cast

import anyio
from anyio import get_cancelled_exc_class
from pydantic import JsonValue

from agentcore._text import clip
from agentcore.agent import Call
from agentcore.assessment import Assessment, SecurityRisk
from agentcore.conversation.core import Core
from agentcore.conversation.exceptions import is_cancelled, masked_repr, open_group, safe_str, spurious_cancellation
from agentcore.conversation.guards import mark_running_in
from agentcore.events import ActionAssessed, AgentErrorEvent
from agentcore.logs import get_logger
from agentcore.secrets import find_masks
from agentcore.security import Check, CheckContext, NeverConfirm, combine, highest_risk
from agentcore.tools import FinishAction, ThinkAction

_log = get_logger(__name__)

_LONGEST_REASON = 500


class Assessed(NamedTuple):
    """A call, and what the checks made of it."""

    call: Call
    """With other arguments where a check changed them."""
    event: ActionAssessed | None
    """None where no check had an opinion: it may start."""

    @property
    def waits(self) -> bool:
        return self.event is not None and self.event.verdict == "ask"

    @property
    def denial(self) -> AgentErrorEvent | None:
        """The answer of a call that is denied."""
        if self.event is None or self.event.verdict != "deny":
            return None
        why = "; ".join(f"{part.by}: {part.reason}" for part in self.event.parts if part.verdict == "deny")
        event = self.call.event
        return AgentErrorEvent(
            cause=event.id,
            tool_name=event.tool_name,
            call_id=event.call_id,
            error=f"Not run: it is not allowed ({why}). Do not try the same again in another way.",
            outcome="not_run",
            code="denied",
        )


async def assess_reply(
    core: Core, checks: Sequence[Check], calls: Sequence[Call], before_waiting: Callable[[], Awaitable[None]]
) -> list[Assessed]:
    """Ask the checks about the calls of one reply. One that is asked about makes the others wait with it.

    Where all checks answer at once nothing is awaited.

    Args:
        core: The conversation.
        checks: Whom to ask; analyzers are asked before the others.
        calls: The calls that can run.
        before_waiting: Called once, before the first check that answers later is awaited.
    """
    if all(type(check) is NeverConfirm for check in checks) and all(call.tool.risk is None for call in calls):
        return [Assessed(call, None) for call in calls]  # no check has an opinion, as by default
    cases = [_Case(core, call) for call in calls]
    # Finishing and thinking do no harm: asking would only tire people.
    asked = [case for case in cases if not issubclass(case.call.tool.action, FinishAction | ThinkAction)]
    round_ = _Round(core, before_waiting)
    with mark_running_in(core.state.conversation_id):
        await round_.ask([check for check in checks if _is_analyzer(check)], asked)
        rules = [check for check in checks if not _is_analyzer(check)]
        await round_.ask(rules, asked)
        if changed := [case for case in asked if case.change_arguments()]:
            await round_.ask(rules, changed)
            for case in changed:
                case.refuse_another_change()
    waits = any(combine(case.parts)[0] == "ask" for case in cases)
    return [case.outcome(waits=waits) for case in cases]


class _Case:
    """One call, and the opinions about it."""

    def __init__(self, core: Core, call: Call) -> None:
        self.call = call
        self.parts: list[Assessment] = []
        self.arguments: dict[str, JsonValue] | None = None
        """Those that a check put in place of the model's."""
        self._core = core
        self._has_opinion = False
        self._ask_tool()

    def context(self) -> CheckContext:
        return CheckContext(
            risk=highest_risk(self.parts) or SecurityRisk.UNKNOWN,
            tool=self.call.tool.annotations,
            workspace_root=self._core.workspace.root,
            state=self._core.state,
            deps=self._core.deps,
        )

    def add(self, part: Assessment) -> None:
        self.parts.append(part)
        self._has_opinion = True

    def change_arguments(self) -> bool:
        """Take over the arguments that the last check to change any gave; return whether they are others."""
        changes = [part for part in self.parts if part.arguments not in (None, self.call.event.arguments)]
        if not changes:
            return False
        changed, by = dict(changes[-1].arguments or {}), changes[-1].by
        try:
            action = self.call.tool.parse(changed, mask=self._core.secrets.mask)
        except Exception as error:
            self.add(
                Assessment(verdict="ask", by=by, reason=f"Its other arguments do not fit: {_told(error, self._core)}")
            )
            return False
        self.arguments = changed
        self.call = Call(self.call.event.model_copy(update={"arguments": changed}), self.call.tool, action)
        self._ask_tool()
        return True

    def refuse_another_change(self) -> None:
        """Have a person decide where the arguments would be changed once more."""
        given = self.parts[-1].arguments if self.parts else None
        for part in self.parts:
            given = part.arguments if part.arguments is not None else given
        if given is not None and given != self.arguments:
            self.add(Assessment(verdict="ask", by="checks", reason="The checks do not agree on the arguments."))

    def outcome(self, *, waits: bool) -> Assessed:
        verdict, risk = combine(self.parts)
        if waits and verdict == "allow":
            verdict = "ask"
            self.add(Assessment(verdict="ask", by="reply", reason="Another call of the same reply waits."))
        if not self._has_opinion:
            return Assessed(self.call, None)
        event = ActionAssessed(
            cause=self.call.event.id,
            verdict=verdict,
            risk=risk,
            parts=tuple(self.parts),
            arguments=self.arguments,
            typed_masks=find_masks(self.arguments),
        )
        return Assessed(self.call, event)

    def _ask_tool(self) -> None:
        """Ask the tool for the risk. One that can't tell does not fail the step: not to know is an answer."""
        tool = self.call.tool
        try:
            risk = tool.risk_of(self.call.action)
            if risk is SecurityRisk.UNKNOWN:
                return
            part = Assessment(risk=risk, by="tool")
        except Exception as error:
            shown = masked_repr(self._core.secrets, error)
            _log.warning("risk unknown: asking the tool raised", tool=tool.name, error=shown)
            return
        self.parts.append(part)
        self._has_opinion = self._has_opinion or tool.risk is not None


class _Round:
    """Asks checks about cases: those that answer at once, then all others together."""

    def __init__(self, core: Core, before_waiting: Callable[[], Awaitable[None]]) -> None:
        self._core = core
        self._before_waiting: Callable[[], Awaitable[None]] | None = before_waiting

    async def ask(self, checks: Sequence[Check], cases: Sequence[_Case]) -> None:
        later: list[tuple[Check, _Case, Awaitable[object]]] = []
        try:
            for case in cases:
                context = case.context()
                for check in checks:
                    try:
                        answer: object = check.assess(case.call.event, context)
                        if inspect.isawaitable(answer):
                            later.append((check, case, cast("Awaitable[object]", answer)))
                        else:
                            self._read(check, case, answer)
                    except Exception as error:
                        self._failed(check, case, error)
            if later:
                await self._await_all(later)
        finally:
            for _, _, answer in later:
                if inspect.iscoroutine(answer):
                    answer.close()  # it may not have begun

    async def _await_all(self, later: Sequence[tuple[Check, _Case, Awaitable[object]]]) -> None:
        if self._before_waiting is not None:
            before, self._before_waiting = self._before_waiting, None
            await before()
        async with open_group() as tasks:
            for check, case, answer in later:
                tasks.start_soon(self._await, check, case, answer)

    async def _await(self, check: Check, case: _Case, answer: Awaitable[object]) -> None:
        try:
            with anyio.fail_after(check.timeout):
                self._read(check, case, await answer)
        except get_cancelled_exc_class() as error:  # noqa: ASYNC103 only a cancellation of a scope is raised again
            if await is_cancelled():  # noqa: ASYNC102 asking does not wait
                raise
            self._failed(check, case, spurious_cancellation("It", error))  # noqa: ASYNC104 it was no cancellation of a scope
        except TimeoutError:
            self._failed(check, case, TimeoutError(f"it took longer than its timeout of {check.timeout:g} s"))
        except Exception as error:
            self._failed(check, case, error)

    def _read(self, check: Check, case: _Case, answer: object) -> None:
        if answer is None:
            return
        if not isinstance(answer, Assessment):
            raise TypeError(f"it answered with {type(answer).__name__} instead of an Assessment or None")
        if answer.model_extra:
            raise TypeError(f"an Assessment has no {', '.join(answer.model_extra)}")
        if answer.verdict is None and answer.risk is None and answer.arguments is None:
            raise TypeError("its Assessment has no verdict, no risk and no arguments; without an opinion, answer None")
        case.add(answer if answer.by else answer.model_copy(update={"by": _name_of(check)}))

    def _failed(self, check: Check, case: _Case, error: Exception) -> None:
        # The reply was paid for, and has to be kept; where no check could decide, a person does.
        name = _name_of(check)
        _log.warning(
            "a person is asked: a check failed",
            check=name,
            tool=case.call.tool.name,
            error=masked_repr(self._core.secrets, error),
        )
        risk = SecurityRisk.HIGH if _is_analyzer(check) else None
        case.add(Assessment(verdict="ask", risk=risk, by=name, reason=f"The check failed: {_told(error, self._core)}"))


def _is_analyzer(check: object) -> bool:
    return getattr(check, "is_analyzer", False) is True


def _name_of(check: object) -> str:
    name = getattr(check, "name", None)
    return name if isinstance(name, str) and name else type(check).__name__


def _told(error: Exception, core: Core) -> str:
    return clip(f"{type(error).__name__}: {safe_str(error)}", _LONGEST_REASON, mask=core.secrets.mask)
