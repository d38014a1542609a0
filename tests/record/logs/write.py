"""Write a log that holds every kind of event, as this version writes it, to be read by all later ones.

    python tests/record/logs/write.py tests/record/logs/v1

Done once per format version, when it is released; what it wrote is never changed. `test_recorded_logs.py` reads it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio

from agentcore.assessment import Assessment, SecurityRisk
from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentConfigured,
    AgentErrorEvent,
    CheckpointsSet,
    Condensation,
    CondensationRequest,
    CondensationSummaryEvent,
    ContextAdded,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    Fact,
    Forked,
    HeadMoved,
    HookEvent,
    InterruptEvent,
    LimitsSet,
    MessageEvent,
    ObservationEvent,
    PauseEvent,
    PolicySet,
    QuestionAnswered,
    QuestionAsked,
    RetryEvent,
    SecretsRegistered,
    StatusChanged,
    SystemPromptEvent,
    TagsSet,
    TitleSet,
    UnknownEvent,
    UnknownFact,
    UsageEvent,
    UserRejectObservation,
    WorkspaceCheckpointed,
    WorkspaceOpened,
    WorkspaceRestored,
    WrittenCall,
)
from agentcore.messages import (
    ImageBlock,
    Message,
    ProviderBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
    UnknownBlock,
)
from agentcore.record import BLOB_THRESHOLD, EventLog, FileStore
from agentcore.usage import Limits, Usage

LARGE = "A long output. " * (BLOB_THRESHOLD // 15 + 1)


def fact(update: Fact) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(update=update)


def status(value: ConversationStatus, code: str | None = None) -> ConversationStateUpdateEvent:
    return fact(StatusChanged(status=value, code=code))


def action(event_id: str, call_id: str, **fields: Any) -> ActionEvent:
    return ActionEvent(id=event_id, reply_id="reply_1", tool_name="terminal", call_id=call_id, **fields)


def groups() -> list[list[Event]]:
    """Every kind of event, fact and block, in the order of a conversation, with text that is not ASCII."""
    first = action(
        "ev_first",
        "call_1",
        arguments={"command": "ls"},
        written=WrittenCall(name="bash", arguments={"Command": "ls", "why": "żółw"}),
        ignored=("why",),
        before=(ThinkingBlock(text="Zuerst schauen.", signature="c2ln"), TextBlock(text="I look first.")),
    )
    second = action(
        "ev_second",
        "call_1",  # some providers use an id twice
        arguments={"command": "rm -r build", "n": [1, 2.5, None, True, {"deep": "żółw 🐢"}]},
        after=(TextBlock(text="And then."),),
    )
    parts = (
        Assessment(by="tool", risk=SecurityRisk.HIGH),
        Assessment(by="house rules", verdict="ask", reason="It deletes."),
    )
    assessed = ActionAssessed(
        cause="ev_second", verdict="ask", risk=SecurityRisk.HIGH, parts=parts, arguments={"command": "rm -r build/"}
    )
    third = action("ev_third", "call_3", arguments={}, malformed="{command: ls")
    schema = ToolSchema(name="terminal", description="Runs a command.", parameters={"type": "object"})
    return [
        [AgentConfigured(agent={"llm": {"model": "scripted"}}, missing=("tools.custom",)), WorkspaceOpened(workspace="local", spec={"root": "/srv/project"})],
        [SystemPromptEvent(prompt="You are careful.", tools=(schema,))],
        [fact(LimitsSet(limits=Limits(steps=50, cost=Decimal("2.50")))), fact(PolicySet(policy={"name": "always"}))],
        [fact(SecretsRegistered(names=("TOKEN",))), fact(TitleSet(title="A title")), fact(TagsSet(tags={"team": "a"}))],
        [MessageEvent(id="ev_task", source="user", message=Message.user("Do it. \u2028", ImageBlock(url="https://example.org/a.png")))],
        [status(ConversationStatus.RUNNING, "run")],
        [RetryEvent(attempt=1, error="overloaded", delay=0.5)],
        [first, second, third, UsageEvent(model="scripted", reply_id="reply_1", view_seq=9, usage=Usage(requests=1, input_tokens=100, output_tokens=20, known_cost=Decimal("0.0125")), stop_reason="tool_calls", seconds=1.25), assessed, ActionStarted(cause="ev_first")],
        [ObservationEvent(cause="ev_first", tool_name="terminal", call_id="call_1", content=(TextBlock(text=LARGE), ImageBlock(data="aGk=", media_type="image/png")), data={"exit_code": 0})],
        [AgentErrorEvent(cause="ev_third", tool_name="terminal", call_id="call_3", error="That is no JSON.", code="bad_arguments")],
        [status(ConversationStatus.WAITING_FOR_CONFIRMATION)],
        [ActionApproved(source="user", cause="ev_second", by="ada", arguments={"command": "rm -r dist"}), ActionStarted(cause="ev_second"), status(ConversationStatus.RUNNING)],
        [HookEvent(hook="before_tool", outcome="allowed", output="fine")],
        [UserRejectObservation(source="user", cause="ev_second", tool_name="terminal", call_id="call_1", reason="not now", by="ada")],
        [MessageEvent(source="agent", reply_id="reply_2", message=Message.assistant(RedactedThinkingBlock(data="eA=="), ReasoningBlock(id="rs_1", summary=("thought",), encrypted_content="eA=="), ProviderBlock(provider="p", data={"type": "search", "results": [1]}), "Done, but for one thing.")), UsageEvent(model="other", purpose="ask", usage=Usage(requests=1, unpriced_requests=1))],
        [MessageEvent(source="environment", code="empty_reply", message=Message(role="user", content=(ToolCallBlock(id="c", name="n", arguments="{"), ToolResultBlock(call_id="c", name="n", content=(TextBlock(text="r"),)), UnknownBlock.model_validate({"type": "hologram", "depth": 3}))))],
        [CondensationRequest(), Condensation(forgotten=("ev_first",), summary="It looked."), ContextAdded(name="file:AGENTS.md", text="Be kind.", digest="00"), CondensationSummaryEvent(summary="It looked.")],
        [PauseEvent(source="user"), status(ConversationStatus.PAUSED)],
        [status(ConversationStatus.RUNNING, "run"), InterruptEvent(source="user", partial_text="I was ab", reason="too slow")],
        [HeadMoved(source="user", to=17), fact(Forked(conversation_id="another", at=3))],
        [ConversationErrorEvent(code="steps", detail="50 steps were taken.")],
        [UnknownEvent.model_validate({"kind": "dream", "about": {"sheep": 3}}), fact(UnknownFact.model_validate({"fact": "mood", "mood": "good"}))],
        [MessageEvent(source="user", message=Message.user("blob:sha256:is how this message begins")).model_copy(update={"later": 1})],
        [action("ev_asking", "call_4", arguments={"text": "Which port?"}, tool_digest="0" * 64), QuestionAsked(id="ev_question", source="agent", cause="ev_asking", text="Which port?", answer_schema={"type": "integer"}, options=())],
        [QuestionAnswered(source="user", cause="ev_asking", question="ev_question", answer=8080, outcome="answered", by="ada"), ObservationEvent(source="user", cause="ev_asking", tool_name="ask_user", call_id="call_4", content=(TextBlock(text="8080"),), data={"answer": 8080})],
        [action("ev_resumed", "call_5", arguments={"command": "deploy"}), ActionStarted(cause="ev_resumed")],
        [QuestionAsked(id="ev_required", cause="ev_resumed", text="Wohin, żółw?", options=("staging", "production"), resumes=True, note={"state": ["<secret:TOKEN>", 1, None]}, typed_masks=("<secret:TOKEN>",))],
        [QuestionAnswered(source="user", cause="ev_resumed", question="ev_required", answer="staging", outcome="answered"), ActionStarted(cause="ev_resumed")],
        [ObservationEvent(cause="ev_resumed", tool_name="terminal", call_id="call_5", content=(TextBlock(text="Deployed."),), data={})],
        [fact(CheckpointsSet(when="settled")), WorkspaceCheckpointed(cause="ev_third", checkpoint="9" * 40, store="every-kind", files=3, left_out=("żółw.mp4 (larger than 100 MB)",))],
        [WorkspaceRestored(cause="ev_first", checkpoint="ev_second", written=2, removed=1, error="No space left on device.")],
    ]  # fmt: skip


_NAMED = {
    *("ev_first", "ev_second", "ev_third", "ev_task", "ev_asking", "ev_question", "ev_resumed", "ev_required"),
}


def stamped(event: Event, number: int) -> Event:
    """Give an event an id and a time that are the same in every run."""
    time = datetime(2026, 11, 21, 12, tzinfo=UTC) + timedelta(milliseconds=1500 * number)
    event_id = event.id if event.id in _NAMED else f"ev_{number}"
    return event.model_copy(update={"id": event_id, "timestamp": time})


def numbered() -> Callable[[Event], Event]:
    count = iter(range(1, 1_000))
    return lambda event: stamped(event, next(count))


async def main(folder: str) -> None:
    stamp = numbered()
    log = await EventLog.create(FileStore(folder), "every-kind")
    for group in groups():
        await log.append([[stamp(event) for event in group]])
    await log.close()
    await anyio.Path(folder, "every-kind", "lock").unlink()
    state = log.state
    expected = {
        "events": [json.loads(event.model_dump_json()) for event in state.events],
        "settled": [seq for seq in range(state.head + 1) if state.is_settled(seq)],
        "shown": [event.seq for event in state.shown],
        "open": sorted(state.open_actions),
        "workspace": None if state.workspace is None else state.workspace.spec,
        "status": state.status,
        "status_code": state.status_code,
        "usage": json.loads(state.usage.model_dump_json()),
        "limits": json.loads(state.limits.model_dump_json()),
        "policy": state.policy,
        "secret_names": state.secret_names,
        "title": state.title,
        "tags": dict(state.tags),
        "run_steps": state.run.steps,
        "worked_seconds": state.worked_seconds,
    }
    text = json.dumps(expected, ensure_ascii=False, indent=1).replace(LARGE, "<LARGE>")
    await anyio.Path(folder, "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if Path(sys.argv[1]).exists():
        sys.exit(f"{sys.argv[1]} is there already, and stays as it is.")
    anyio.run(main, sys.argv[1])
