from __future__ import annotations

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
from agentcore.testing import Gate, ScriptedLLM, ScriptLine, hang, say, truncated

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


async def test_a_model_that_answers_leaves_the_others_alone() -> None:
    three = Three(["Hi."], ["Never."])
    assert (await three.fallback.complete(ASK)).model == "model-1"
    assert three.fallback.name == "model-1"
    assert three.asked == [1, 0]


@pytest.mark.parametrize(
    "error", [AuthenticationError, RateLimited, ModelTimeout, ModelUnavailable, ModelConnectionError]
)
async def test_what_is_the_matter_with_a_provider_moves_on(error: type[ModelError]) -> None:
    three = Three([error("no"), error("no")], ["Hi.", "Hi."])
    assert (await three.fallback.complete(ASK)).message.text == "Hi."
    assert await three.deltas() == [TextDelta(text="Hi.")]


@pytest.mark.parametrize("error", [BadRequest, ContentPolicy, ContextWindowExceeded, MalformedHistory])
async def test_what_is_the_matter_with_the_messages_is_raised_at_once(error: type[ModelError]) -> None:
    three = Three([error("no"), error("no")], ["Never."])
    with pytest.raises(error):
        await three.fallback.complete(ASK)
    with pytest.raises(error):
        await three.deltas()
    assert three.asked == [2, 0]


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


async def test_a_stream_has_no_reply_before_its_end() -> None:
    async with Three(["Hi there."]).fallback.stream(ASK) as stream:
        with pytest.raises(RuntimeError, match="has not ended yet"):
            _ = stream.reply


async def test_cancelling_asks_nobody_else() -> None:
    three = Three([hang, hang], ["Never."])
    for call in (three.deltas, lambda: three.fallback.complete(ASK)):
        with anyio.move_on_after(0):
            await call()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(three.deltas)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert three.asked[1] == 0


async def test_a_deadline_may_stand_around_any_part_of_a_stream() -> None:
    gate = Gate()
    three = Three([truncated("one two")], [gate.hold(say("three four"), after=1)])
    with anyio.fail_after(10):
        async with three.fallback.stream(ASK) as stream:
            with anyio.fail_after(5):
                assert await anext(stream) == TextDelta(text="one")
            with anyio.fail_after(5):
                assert isinstance(await anext(stream), ResetDelta)
            with anyio.fail_after(5):
                assert await anext(stream) == TextDelta(text="three")
            with anyio.move_on_after(0) as too_short:
                await anext(stream)
            assert too_short.cancelled_caught


async def test_errors_of_programs_are_not_caught() -> None:
    with pytest.raises(ZeroDivisionError):
        await Three([ZeroDivisionError()], ["Never."]).fallback.complete(ASK)


async def test_a_conversation_goes_on_with_the_next_model_and_records_why() -> None:
    model = FallbackLLM(ScriptedLLM([truncated("Well, I")]), ScriptedLLM(["Done."]))
    async with Conversation(Agent(llm=model)) as conversation:
        result = await conversation.run("Hello?")
        assert result.text == "Done."
        retries = [event for event in conversation.state.events if isinstance(event, RetryEvent)]
    assert [event.error for event in retries] == ["The stream ended before the reply was complete."]
