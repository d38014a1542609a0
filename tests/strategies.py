"""Random events and random logs, for properties: `from strategies import events, logs`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from agentcore.assessment import Verdict
from agentcore.display import DisplayBlock, ProgressBlock, UnknownDisplay
from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentConfigured,
    AgentErrorEvent,
    Condensation,
    CondensationRequest,
    CondensationSummaryEvent,
    ContextAdded,
    ContextNotice,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    EventBase,
    Fact,
    Forked,
    HeadMoved,
    HookEvent,
    InterruptEvent,
    KnownEvent,
    LimitsSet,
    MessageEvent,
    ObservationEvent,
    PauseEvent,
    PolicySet,
    QuestionAnswered,
    QuestionAsked,
    QuestionOutcome,
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
    WorkspaceOpened,
    WrittenCall,
)
from agentcore.messages import (
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from agentcore.usage import Limits, Usage

__all__ = ["blocks", "display_blocks", "events", "groups", "json_values", "logs", "messages"]

_words = st.text(max_size=12) | st.sampled_from(["blob:sha256:no", '"', "\\", "\u2028", "\0", "NaN", "\ufffd", "🐢"])
_maybe_words = st.none() | _words
_count = st.integers(0, 2**60)
_seconds = st.none() | st.floats(0.001, 1e6)
_cost = st.decimals(0, 1_000, places=6)
_zones = st.sampled_from([UTC, timezone(timedelta(hours=-3, minutes=-30))])
_times = st.datetimes(timezones=_zones).filter(lambda time: 1900 < time.year < 2200)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=5,
)
_objects: st.SearchStrategy[dict[str, JsonValue]] = st.dictionaries(_words, json_values, max_size=3)
_no_fields: dict[str, Any] = {}
_extra = st.just(_no_fields) | st.dictionaries(
    st.sampled_from(["x_new", "group", "crc", "later"]), json_values, max_size=2
)
"""Fields that only a newer version knows."""


def _values(cls: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of a class that keeps fields it does not know, now and then with such fields."""

    def build(known: dict[str, Any], extra: dict[str, Any]) -> Any:
        return cls.model_validate({**extra, **known})

    return st.builds(build, st.fixed_dictionaries(fields), _extra)


_result_blocks: st.SearchStrategy[Any] = (
    _values(TextBlock, text=_words)
    | _values(ImageBlock, data=st.just("aGk="), media_type=st.just("image/png"))
    | _values(ImageBlock, url=_words)
    | _values(DocumentBlock, data=st.just("aGk="), media_type=st.just("application/pdf"), name=_maybe_words)
    | _values(DocumentBlock, url=_words)
)
_unknown_blocks: st.SearchStrategy[Any] = _values(UnknownBlock, type=st.sampled_from(["hologram", "video"]))
blocks: st.SearchStrategy[Block] = st.one_of(
    _result_blocks,
    _unknown_blocks,
    _values(ThinkingBlock, text=_words, signature=_maybe_words),
    _values(AudioBlock, data=st.just("aGk="), media_type=_maybe_words, transcript=_words, id=_maybe_words),
    _values(RefusalBlock, text=_words),
    _values(RedactedThinkingBlock, data=_words),
    _values(ReasoningBlock, id=_words, summary=st.tuples(_words), encrypted_content=_maybe_words),
    _values(ToolCallBlock, id=_words, name=_words, arguments=_objects | _words),
    _values(ToolResultBlock, call_id=_words, name=_words, content=st.tuples(_result_blocks), is_error=st.booleans()),
    _values(ProviderBlock, provider=_words, data=json_values),
)
_some_blocks = st.lists(blocks, max_size=3).map(tuple)
messages: st.SearchStrategy[Message] = _values(
    Message, role=st.sampled_from(["system", "user", "assistant", "tool"]), content=_some_blocks
)
_limits: st.SearchStrategy[Any] = _values(
    Limits, steps=st.none() | st.integers(1, 2**40), cost=st.none() | _cost, call_seconds=_seconds, run_seconds=_seconds
)

_SPECIAL: dict[tuple[type[Any], str], st.SearchStrategy[Any]] = {
    (MessageEvent, "message"): messages,
    (ActionEvent, "before"): _some_blocks,
    (ActionEvent, "after"): _some_blocks,
    (ObservationEvent, "content"): st.lists(_result_blocks | _unknown_blocks, max_size=2).map(tuple),
    (QuestionAsked, "note"): json_values,
    (QuestionAnswered, "answer"): _maybe_words,
    (UsageEvent, "purpose"): st.sampled_from(["step", "ask"]),
    (UsageEvent, "model"): st.sampled_from(["small", "large"]),
    (UnknownEvent, "kind"): st.sampled_from(["dream", "reflection"]),
    (UnknownFact, "fact"): st.sampled_from(["mood", "weather"]),
    (UnknownDisplay, "kind"): st.sampled_from(["map", "chart"]),
    (LimitsSet, "limits"): _limits,
    (TagsSet, "tags"): st.dictionaries(_words, _words, max_size=2),
    (ProgressBlock, "done"): st.none() | st.floats(0, 1),
}
"""Fields whose type says too little, or too much."""


def _of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of(arguments[0])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of([_of(argument) for argument in arguments])
    if origin is tuple:
        return st.lists(_of(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        of_values = arguments[1].__origin__ if get_origin(arguments[1]) is Annotated else arguments[1]
        return st.dictionaries(_words, _words, max_size=3) if of_values is str else _objects
    if annotation in _PLAIN_TYPES:
        return _PLAIN_TYPES[annotation]
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    return _values(annotation, **_fields(annotation))


_PLAIN_TYPES: dict[Any, st.SearchStrategy[Any]] = {
    str: _words,
    bool: st.booleans(),
    int: _count,
    float: st.floats(0.001, 1e6),
    Decimal: _cost,
    type(None): st.none(),
}


def _fields(cls: type[BaseModel]) -> dict[str, st.SearchStrategy[Any]]:
    own = {name: field.annotation for name, field in cls.model_fields.items() if name not in EventBase.model_fields}
    return {name: _SPECIAL[cls, name] if (cls, name) in _SPECIAL else _of(type_) for name, type_ in own.items()}


_COMMON: dict[str, st.SearchStrategy[Any]] = {
    "timestamp": _times,
    "source": st.sampled_from(["user", "agent", "environment"]),
    "cause": _maybe_words,
}


def events_of(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Events of one class, its fields filled at random."""
    fields = {name: strategy for name, strategy in _fields(cls).items() if name != "kind" or cls is UnknownEvent}
    return _values(cls, **{**_COMMON, **fields})


display_blocks: st.SearchStrategy[DisplayBlock] = _of(DisplayBlock)

events: st.SearchStrategy[Event] = st.one_of([events_of(cls) for cls in (*get_args(KnownEvent), UnknownEvent)])
"""Any event, of an unknown kind too, its fields filled at random."""

groups: st.SearchStrategy[list[list[Event]]] = st.lists(st.lists(events, min_size=1, max_size=3), max_size=5)
"""Groups of unrelated events."""


@st.composite
def logs(draw: st.DrawFn, *, max_groups: int = 25) -> list[list[Event]]:
    """Groups of events that refer to each other: mostly as conversations write them, and now and then not.

    Times go forward, answers name actions (of any branch, some twice), the head moves to any earlier point.
    """
    found: list[list[Event]] = []
    seen: list[ActionEvent] = []
    now = datetime(2026, 1, 1, tzinfo=UTC)
    count = 0
    for kinds in draw(st.lists(st.lists(st.sampled_from(_KINDS), min_size=1, max_size=3), max_size=max_groups)):
        group: list[Event] = []
        for kind in kinds:
            number = draw(st.integers(0, count))
            event = _cut(number, found) if kind == "forget" else None
            event = event or (_about(kind, number, seen[number % len(seen)]) if seen else None)
            now += timedelta(seconds=number % 7)
            group.append((event or _plain(kind, number)).model_copy(update={"timestamp": now}))
            count += 1
        seen.extend(event for event in group if isinstance(event, ActionEvent))
        found.append(group)
    return found


_FACTS: Sequence[Fact] = (
    *(StatusChanged(status=status) for status in ConversationStatus),
    StatusChanged(status=ConversationStatus.RUNNING, code="run"),
    StatusChanged(status=ConversationStatus.PAUSED, code="recovered"),
    TitleSet(title="A title"),
    TagsSet(tags={"a": "b"}),
    LimitsSet(limits=Limits(steps=3)),
    PolicySet(policy={"name": "always"}),
    SecretsRegistered(names=("TOKEN", "KEY")),
    SecretsRegistered(names=("KEY", "OTHER")),
    Forked(conversation_id="another", at=3),
    ContextNotice(name="file:AGENTS.md", code="too_large", detail="It was cut."),
    UnknownFact(fact="mood"),
)
_PLAIN: dict[str, Callable[[int], Event]] = {
    "action": lambda n: ActionEvent(
        reply_id=f"r{n // 4}",  # a few calls make a reply
        tool_name="t",
        call_id=f"c{n}",
        arguments={},
        written=(None, WrittenCall(name="a t"), WrittenCall(name="T", arguments={"n": n}))[n % 3],
    ),
    "user": lambda n: MessageEvent(
        source="user",
        message=Message.user(f"m{n}"),
        prefix="before" if n % 3 == 0 else None,
        suffix="behind" if n % 4 == 0 else None,
    ),
    "agent": lambda n: MessageEvent(source="agent", message=Message.assistant(f"m{n}")),
    "fact": lambda n: ConversationStateUpdateEvent(update=_FACTS[n % len(_FACTS)]),
    "usage": lambda n: UsageEvent(
        model="ab"[n % 2],
        purpose=("step", "ask", "condense")[n % 3],
        usage=Usage(requests=1, input_tokens=n),
        view_seq=None if n % 3 else n,
    ),
    "move": lambda n: HeadMoved(to=n),
    "prompt": lambda n: SystemPromptEvent(prompt=f"p{n}", parts={f"file:{n}": str(n)}, base=str(n)),
    "ask": lambda _: CondensationRequest(),
    "add_context": lambda n: ContextAdded(name=f"file:{n}", text=f"part {n}", digest=str(n)),
    "summary": lambda n: CondensationSummaryEvent(summary=f"s{n}"),
    "pause": lambda _: PauseEvent(),
    "interrupt": lambda n: InterruptEvent(reason=f"i{n}"),
    "error": lambda n: ConversationErrorEvent(code="steps", detail=f"e{n}"),
    "retry": lambda n: RetryEvent(attempt=n, error="x", delay=1),
    "hook": lambda _: HookEvent(hook="h", outcome="ok"),
    "workspace": lambda n: WorkspaceOpened(workspace="local", spec={"root": f"/{n}"}),
    "configured": lambda n: AgentConfigured(agent={"n": n}, command=f"cmd_{n}" if n % 2 else None),
    "unknown": lambda n: UnknownEvent(kind="dream", critical=n % 5 == 0),
}
_KINDS = (
    *_PLAIN,
    *["action", "answer"] * 6,
    *["start", "assess", "approve", "question", "question_end", "user", "agent", "fact", "move", "forget"] * 2,
)


def _plain(kind: str, number: int) -> Event:
    return _PLAIN.get(kind, _PLAIN["user"])(number)


def _cut(number: int, log: Sequence[Sequence[Event]]) -> Condensation:
    """Forget some events of the log and mask one, also where that is not legal: a summary, half a reply, an open call."""
    ids = [event.id for group in log for event in group]
    return Condensation(
        forgotten=(*ids[number : number + number % 5], "ev_nowhere"),
        masked=tuple(ids[-number:][:2]),
        summary=f"before {number}" if number % 2 else None,
        fields={"facts": {"n": number}},
        reason=("soft", "hard", "asked", "repair")[number % 4],
        condenser="summary" if number % 2 else None,
        tokens_before=number,
        tokens_after=0,
    )


def _about(kind: str, number: int, action: ActionEvent) -> Event | None:
    about: dict[str, Any] = {"cause": action.id, "tool_name": action.tool_name, "call_id": action.call_id}
    match kind:
        case "start":
            return ActionStarted(cause=action.id)
        case "assess":
            verdict: Verdict = ("allow", "ask", "deny")[number % 3]
            return ActionAssessed(cause=action.id, verdict=verdict, arguments={"n": number} if number % 2 else None)
        case "question" | "question_end":
            return _question(kind, number, action)
        case "approve":
            return ActionApproved(cause=action.id, arguments={"edited": number} if number % 2 else None)
        case "answer" if number % 3 == 0:
            return ObservationEvent(**about, content=())
        case "answer" if number % 3 == 1:
            return UserRejectObservation(**about, reason="no")
        case "answer":
            return AgentErrorEvent(**about, error="it broke")
        case _:
            return None


def _question(kind: str, number: int, action: ActionEvent) -> Event:
    # Its id says which, so that an end may come twice, early, or for another action.
    question = f"q{number % 4}"
    if kind == "question":
        options = ("a", "b") if number % 3 else ()
        schema: dict[str, JsonValue] | None = None if number % 5 else {"type": "integer"}
        return QuestionAsked(
            id=question,
            cause=action.id,
            text="?",
            options=options,
            answer_schema=schema,
            live=number % 2 == 0,
            resumes=number % 4 == 1,
            note={"n": number} if number % 4 == 1 else None,
        )
    outcome: QuestionOutcome = ("answered", "declined", "withdrawn")[number % 3]
    return QuestionAnswered(cause=action.id, question=question, outcome=outcome, answer=number)
