from __future__ import annotations

from contextlib import nullcontext

import anyio
import pytest

from agentcore import Agent, Conversation
from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContentPolicy,
    ContextWindowExceeded,
    MalformedHistory,
    ModelConnectionError,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from agentcore.events import RetryEvent
from agentcore.llm import (
    FALLBACK_ERRORS,
    CallContext,
    Delta,
    FallbackLLM,
    ResetDelta,
    RetryingModel,
    RetryPolicy,
    RetryReport,
    TextDelta,
)
from agentcore.messages import Message, ToolSchema
from agentcore.testing import ScriptedLLM, ScriptLine, truncated

ASK = [Message.user("Hello?")]
TOOL = ToolSchema(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


class Three:
    """Three scripted models in a row, and what was reported of their calls."""

    def __init__(self, *scripts: list[ScriptLine], on: tuple[type[ModelError], ...] = FALLBACK_ERRORS) -> None:
        self.models = [ScriptedLLM(lines, name=f"model-{number}") for number, lines in enumerate(scripts, 1)]
        self.fallback = FallbackLLM(*self.models, on=on)
        self.reports: list[RetryReport] = []
        self.context = CallContext(on_retry=self._report)

    async def _report(self, report: RetryReport) -> None:
        await anyio.lowlevel.checkpoint()
        self.reports.append(report)

    async def deltas(self) -> list[Delta]:
        async with self.fallback.stream(ASK, context=self.context) as stream:
            return [delta async for delta in stream]

    @property
    def asked(self) -> list[int]:
        return [len(model.requests) for model in self.models]


async def test_the_first_model_that_can_answers_and_says_who_it_is() -> None:
    three = Three([RateLimited("slow down")], [ModelUnavailable("down")], ["Hi."])
    reply = await three.fallback.complete(ASK, [TOOL], context=three.context)
    assert (reply.message.text, reply.model) == ("Hi.", "model-3")
    assert [model.requests[0].messages for model in three.models] == [tuple(ASK)] * 3
    assert [model.requests[0].tools for model in three.models] == [(TOOL,)] * 3
    assert [(report.attempt, str(report.error), report.delay, report.next_model) for report in three.reports] == [
        (1, "slow down", 0, "model-2"),
        (2, "down", 0, "model-3"),
    ]


@pytest.mark.parametrize(
    ("error", "moves_on"),
    [
        *((kind("no"), True) for kind in (AuthenticationError, RateLimited, ModelTimeout)),
        *((kind("no"), True) for kind in (ModelUnavailable, ModelConnectionError)),
        *((kind("no"), False) for kind in (BadRequest, ContentPolicy, ContextWindowExceeded, MalformedHistory)),
        (ZeroDivisionError(), False),
    ],
    ids=repr,
)
async def test_what_is_the_matter_with_a_provider_moves_on_and_anything_else_is_raised_at_once(
    error: Exception, moves_on: bool
) -> None:
    three = Three([error, error, "First."], ["Hi.", "Hi."])
    for ask in (three.deltas, lambda: three.fallback.complete(ASK)):
        with nullcontext() if moves_on else pytest.raises(type(error)):
            await ask()
    assert three.asked == ([2, 2] if moves_on else [2, 0])
    assert (await three.fallback.complete(ASK)).model == three.fallback.name == "model-1"


async def test_the_errors_that_move_on_can_be_chosen() -> None:
    more = Three([ContentPolicy("no")], ["Hi."], on=(*FALLBACK_ERRORS, ContentPolicy))
    assert (await more.fallback.complete(ASK)).message.text == "Hi."
    fewer = Three([RateLimited("no")], ["Never."], on=())
    with pytest.raises(RateLimited):
        await fewer.fallback.complete(ASK)


async def test_the_last_error_is_raised_with_those_before_it_as_notes() -> None:
    for stream in (False, True):
        last = ModelUnavailable("down")
        three = Three([RateLimited("slow down")], [AuthenticationError("no key")], [last])
        with pytest.raises(ModelUnavailable) as raised:
            await (three.deltas() if stream else three.fallback.complete(ASK))
        assert raised.value is last
        assert last.__notes__ == [
            "Asked before, 'model-1': RateLimited: slow down",
            "Asked before, 'model-2': AuthenticationError: no key",
        ]


async def test_the_own_retries_of_a_model_come_first() -> None:
    first = ScriptedLLM([ModelUnavailable("down")] * 3, name="first")
    retried = RetryingModel(first, RetryPolicy(retries=2, min_wait=0, max_wait=0))
    reply = await FallbackLLM(retried, ScriptedLLM(["Hi."], name="second")).complete(ASK)
    assert (reply.model, len(first.requests)) == ("second", 3)


async def test_a_stream_that_breaks_after_deltas_says_that_they_are_void() -> None:
    three = Three([truncated("one two")], [ModelUnavailable("down")], ["three"])
    assert await three.deltas() == [
        TextDelta(text="one"),
        ResetDelta(reason="The stream ended before the reply was complete."),
        TextDelta(text="three"),
    ]
    assert [report.next_model for report in three.reports] == ["model-2", "model-3"]


async def test_what_a_model_has_voided_itself_is_not_voided_twice() -> None:
    first = RetryingModel(
        ScriptedLLM([truncated("one two"), ModelUnavailable("down")]), RetryPolicy(retries=1, min_wait=0)
    )
    async with FallbackLLM(first, ScriptedLLM(["three"])).stream(ASK) as stream:
        deltas = [delta async for delta in stream]
    assert [delta.type for delta in deltas] == ["text", "reset", "text"]
    assert stream.reply.message.text == "three"


async def test_a_conversation_goes_on_with_the_next_model_and_records_why() -> None:
    model = FallbackLLM(ScriptedLLM([truncated("Well, I")]), ScriptedLLM(["Done."]))
    async with Conversation(Agent(llm=model)) as conversation:
        result = await conversation.run("Hello?")
        assert result.text == "Done."
        retries = [event for event in conversation.state.events if isinstance(event, RetryEvent)]
    assert [event.error for event in retries] == ["The stream ended before the reply was complete."]
