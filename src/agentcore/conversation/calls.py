"""The calls of one conversation: those that run, each one object with one scope, and what is kept of the open ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import anyio
from pydantic import JsonValue

from agentcore.agent import Call
from agentcore.conversation.tools import NotRun, ToolSessions
from agentcore.events import ActionEvent, AgentErrorEvent
from agentcore.tools import Resource, conflicts


class RunningCall:
    """A call that runs, or waits until it may."""

    __slots__ = (
        "abandoned",
        "after",
        "asked",
        "begun",
        "call",
        "code",
        "ended",
        "left",
        "pauses",
        "reason",
        "resources",
        "scope",
        "seconds",
        "started",
    )

    def __init__(self, call: Call, resources: Sequence[Resource]) -> None:
        self.call = call
        self.resources = resources
        self.after: list[RunningCall] = []
        """Earlier calls that it conflicts with, and waits for."""
        self.started = False
        """True once its `ActionStarted` is in the log."""
        self.begun = False
        """True once its task has begun."""
        self.ended = anyio.Event()
        """Set when it is over, or never will begin."""
        self.scope = anyio.CancelScope()
        self.reason: str | None = None
        """Why it was stopped."""
        self.code = "interrupted"
        self.seconds: float | None = None
        """How long it may take, once it runs."""
        self.left = 0.0
        """Seconds that it may still take, while it waits for a person."""
        self.pauses = 0
        self.abandoned = False
        """True if it was answered because it does not stop."""
        self.asked = False
        """True once it has ended with a question, and not with an answer."""

    @property
    def id(self) -> str:
        """The id of its action."""
        return self.call.event.id

    def pause(self) -> None:
        """Stop its clock while it waits for a person, until `resume` was called as often."""
        self.pauses += 1
        if self.pauses == 1:
            self.left = self.scope.deadline - anyio.current_time()
            self.scope.deadline = math.inf

    def resume(self) -> None:
        """Count again."""
        self.pauses -= 1
        if not self.pauses:
            self.scope.deadline = anyio.current_time() + self.left

    def stop(self, reason: str, code: str) -> None:
        """Stop it where it is; of several reasons the first one counts."""
        if self.reason is None:
            self.reason, self.code = reason, code
        self.scope.cancel()


def schedule(calls: Sequence[RunningCall], at_once: int) -> list[RunningCall]:
    """Have each call wait for the earlier ones that it conflicts with; give those that may start at once."""
    first: list[RunningCall] = []
    for number, call in enumerate(calls):
        call.after = [earlier for earlier in calls[:number] if conflicts(earlier.resources, call.resources)]
        if not call.after and len(first) < at_once:
            first.append(call)
    return first


class CallTable:
    """Owned by the code that runs calls. Others may look, and stop a call."""

    def __init__(self) -> None:
        self._running: dict[str, RunningCall] = {}
        self._arguments: dict[str, Mapping[str, JsonValue]] = {}
        self.to_retry: set[str] = set()
        """Read-only actions that a crash cut off: to be run again with the next turn."""

    def keep_arguments(self, action_id: str, arguments: Mapping[str, JsonValue] | None) -> None:
        """Keep the arguments of an open action as they were given, where the log has them masked; None: as the log has them."""
        if arguments is None:
            self._arguments.pop(action_id, None)
        else:
            self._arguments[action_id] = arguments

    def arguments_of(self, action_id: str) -> Mapping[str, JsonValue] | None:
        """Return the arguments of an open action as they were given; None after a restart."""
        return self._arguments.get(action_id)

    def add(self, call: RunningCall) -> None:
        """Note a call that is about to run: from here on it can be stopped."""
        self._running[call.id] = call

    def running(self, action_id: str) -> RunningCall | None:
        """Return a call that runs, or is about to."""
        return self._running.get(action_id)

    def suspend(self, action_id: str) -> None:
        """Note that a call ended with a question: its arguments are kept until it is resumed."""
        self._running.pop(action_id, None)

    def forget(self, action_id: str) -> None:
        """Let go of what is kept for an action until it is answered."""
        self._running.pop(action_id, None)
        self._arguments.pop(action_id, None)

    def forget_answered(self, still_open: Mapping[str, object]) -> None:
        """Let go of what is kept for actions that are not open any more, and do not run."""
        for action_id in [each for each in self._arguments if each not in still_open and each not in self._running]:
            del self._arguments[action_id]
        self.to_retry.intersection_update(still_open)

    def stop_all(self, reason: str, code: str) -> None:
        """Stop every call."""
        for call in tuple(self._running.values()):
            call.stop(reason, code)


def interrupted(event: ActionEvent, why: str, code: str, *, in_thread: bool = False) -> AgentErrorEvent:
    """Make the answer of a call that was stopped before its end."""
    text = f"Interrupted: {why}. What it had done by then stays done."
    if in_thread:
        text += " It runs in a thread, which can't be stopped: it may still be running."
    return AgentErrorEvent(
        cause=event.id, tool_name=event.tool_name, call_id=event.call_id, error=text, outcome="interrupted", code=code
    )


def cannot_run(sessions: ToolSessions, call: Call) -> AgentErrorEvent | None:
    """Make the answer of a call whose tool is not there any more, or is another one; None where it can run."""
    now = sessions.resolve(call.tool.name, call.tool.schema.digest)
    if not isinstance(now, NotRun):
        return None
    return (not_run if call.resumption is None else not_resumed)(call.event, now.text, now.code)


def not_resumed(event: ActionEvent, error: str, code: str) -> AgentErrorEvent:
    """Make the answer of an action that started, asked a question, and cannot be resumed with the end of that."""
    text = f"Not resumed after its question. {error} What the call had done before it asked stays done."
    return AgentErrorEvent(
        cause=event.id, tool_name=event.tool_name, call_id=event.call_id, error=text, outcome="interrupted", code=code
    )


def not_run(event: ActionEvent, error: str, code: str) -> AgentErrorEvent:
    """Make the answer of an action that never started."""
    return AgentErrorEvent(
        cause=event.id, tool_name=event.tool_name, call_id=event.call_id, error=error, outcome="not_run", code=code
    )
