"""The contract of every model, as tests: subclass it where your model is tested."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager

import anyio
import anyio.lowlevel

from agentcore.errors import (
    BadRequest,
    ContentPolicy,
    ContextWindowExceeded,
    MalformedHistory,
    ModelError,
    ModelUnavailable,
)
from agentcore.llm import (
    CallContext,
    Delta,
    DeltaStream,
    Features,
    Model,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    ResetDelta,
    ResponseSchema,
    RetryReport,
    TextDelta,
    ToolCallDelta,
    model_features,
    record_model,
    restore_model,
)
from agentcore.llm.model import UNFINISHED
from agentcore.messages import Message, TextBlock, ToolSchema
from agentcore.testing.cancelling import cancel_everywhere
from agentcore.testing.script import Gate, Request, ScriptLine, call, calls, say, truncated
from agentcore.usage import Usage

_SECONDS = 60.0
_ASK = (Message.system("Be brief."), Message.user("Hello?"))
_READ = ToolSchema(
    name="read",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
_LINE = calls(
    call("read", path="a b"),
    call("read", path="c"),
    text="Let me see.",
    thinking="two files",
    usage=Usage(input_tokens=100, output_tokens=9),
)
_ERRORS: tuple[ModelError, ...] = (
    BadRequest("no"),
    ContentPolicy("flagged"),
    ContextWindowExceeded("too long"),
    MalformedHistory("roles must alternate"),
)
"""Errors that no wrapper tries again and that no other model is asked after."""


async def _read(model: Model, *messages: Message, context: CallContext | None = None) -> tuple[list[Delta], Reply]:
    async with model.stream(messages or _ASK, (_READ,), context=context) as stream:
        deltas = [delta async for delta in stream]
        return deltas, stream.reply


async def _complete(model: Model, *messages: Message, context: CallContext | None = None) -> Reply:
    return await model.complete(messages or _ASK, (_READ,), context=context)


async def _raised(answer: Awaitable[object]) -> Exception | None:
    try:
        await answer
    except Exception as error:
        return error
    return None


def _added_up(deltas: Iterable[Delta]) -> tuple[str, str, list[str]]:
    """Return the text, the thinking and the arguments of each call that deltas come to."""
    text, thinking, arguments = "", "", dict[int, str]()
    for delta in deltas:
        match delta:
            case TextDelta() | RefusalDelta():
                text += delta.text
            case ReasoningDelta():
                thinking += delta.text
            case ToolCallDelta():
                arguments[delta.index] = arguments.get(delta.index, "") + delta.arguments
            case ResetDelta():
                text, thinking, arguments = "", "", {}
    return text, thinking, [arguments[index] for index in sorted(arguments)]


def _scripted_reply(reply: Reply) -> tuple[str, str, Sequence[tuple[str, object]]]:
    tools = [(block.name, block.arguments) for block in reply.message.tool_calls]
    return reply.message.text, reply.stop_reason, tools


class ModelContract:
    """The behaviour that all models share, as async tests for pytest with anyio's plugin (`anyio_mode = "auto"`).

    A subclass has a method `playing`, which opens the model with something behind it that answers by a script: the model
    that yours wraps, or a server on the loopback. Where the model tries again by itself, it does so without waiting.

        class TestMyModel(ModelContract):
            @asynccontextmanager
            async def playing(self, lines, *, repeat=False):
                yield MyModel(ScriptedLLM(lines, repeat=repeat))
    """

    def playing(
        self, lines: Iterable[ScriptLine] | Callable[[Request], ScriptLine], *, repeat: bool = False
    ) -> AbstractAsyncContextManager[Model]:
        """Open a model that plays a script.

        Args:
            lines: What it answers, as `ScriptedLLM` and `serve_provider` take it.
            repeat: Whether the script starts over after its last line.
        """
        raise NotImplementedError

    async def test_a_reply_has_what_the_model_said_and_what_it_used(self) -> None:
        with anyio.fail_after(_SECONDS):
            async with self.playing([_LINE]) as model:
                reply = await _complete(model)
        assert reply.message.role == "assistant"
        assert _scripted_reply(reply) == (
            "Let me see.",
            "tool_calls",
            [("read", {"path": "a b"}), ("read", {"path": "c"})],
        )
        assert len({block.id for block in reply.message.tool_calls}) == 2
        assert (reply.usage.requests, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 100, 9)

    async def test_a_stream_comes_to_the_same_reply(self) -> None:
        with anyio.fail_after(_SECONDS):
            async with self.playing([_LINE, _LINE]) as model:
                whole = await _complete(model)
                _, streamed = await _read(model)
        assert _scripted_reply(streamed) == _scripted_reply(whole)
        assert (streamed.usage.input_tokens, streamed.usage.output_tokens) == (100, 9)
        assert streamed.model == whole.model

    async def test_the_deltas_of_a_stream_add_up_to_its_reply(self) -> None:
        with anyio.fail_after(_SECONDS):
            async with self.playing([_LINE]) as model:
                deltas, reply = await _read(model)
        text, thinking, arguments = _added_up(deltas)
        assert text == reply.message.text
        assert thinking == "two files"
        assert [json.loads(each) for each in arguments] == [block.arguments for block in reply.message.tool_calls]

    async def test_a_stream_has_no_reply_before_its_end(self) -> None:
        with anyio.fail_after(_SECONDS):
            async with self.playing(["one two"]) as model, model.stream(_ASK) as stream:
                await anext(stream)
                try:
                    raise AssertionError(f"it had a reply before its end: {stream.reply!r}")
                except RuntimeError as error:
                    assert str(error) == UNFINISHED  # noqa: PT017 the words are what is to be the same
                deltas = [delta async for delta in stream]
                assert [delta async for delta in stream] == []
        assert deltas
        assert stream.reply.message.text == "one two"

    async def test_each_delta_may_be_read_under_a_deadline_of_its_own(self) -> None:
        deltas: list[Delta] = []
        with anyio.fail_after(_SECONDS):
            async with self.playing(["one two three"]) as model, model.stream(_ASK) as stream:
                while (delta := await self._next(stream)) is not None:
                    deltas.append(delta)
        assert _added_up(deltas)[0] == stream.reply.message.text == "one two three"

    async def _next(self, stream: DeltaStream) -> Delta | None:
        # A scope of the stream's own that is open between two deltas would be left in the wrong order.
        with anyio.fail_after(_SECONDS):
            return await anext(stream, None)

    async def test_a_stream_that_is_left_early_ends_the_call(self) -> None:
        gate = Gate()
        with anyio.fail_after(_SECONDS):
            async with self.playing([gate.hold(say("one two"), after=1), "three"]) as model:
                async with model.stream(_ASK) as stream:
                    await anext(stream)
                await gate.left()
                assert (await _complete(model)).message.text == "three"

    async def test_an_error_is_the_same_whether_streamed_or_not(self) -> None:
        for error in _ERRORS:
            with anyio.fail_after(_SECONDS):
                async with self.playing([error], repeat=True) as model:
                    assert type(await _raised(_complete(model))) is type(error)
                    assert type(await _raised(_read(model))) is type(error)

    async def test_a_stream_that_breaks_is_an_error_or_starts_over_and_says_so(self) -> None:
        line = truncated("one two", error=ModelUnavailable("overloaded"))
        deltas: list[Delta] = []
        with anyio.fail_after(_SECONDS):
            async with self.playing([line, "three four"]) as model:
                try:
                    async with model.stream(_ASK) as stream:
                        async for delta in stream:
                            deltas.append(delta)  # noqa: PERF401 those before an error are to be seen too
                except ModelUnavailable:
                    return
        assert any(isinstance(delta, ResetDelta) for delta in deltas)
        assert _added_up(deltas)[0] == stream.reply.message.text == "three four"

    async def test_a_call_that_is_cancelled_at_any_point_leaves_nothing_behind(self) -> None:
        for answer in (_complete, _read):
            with anyio.fail_after(_SECONDS):
                async with self.playing(["one two"], repeat=True) as model:
                    await answer(model)
                    for attempt in cancel_everywhere():
                        await attempt(answer, model)
                    # A place or a lock that was not given back would be waited for in vain.
                    assert (await _complete(model)).message.text == "one two"

    async def test_calls_at_once_are_answered_each_its_own(self) -> None:
        texts: dict[str, str] = {}

        async def ask(model: Model, text: str) -> None:
            message = Message.user(text)
            answer = (await _read(model, message))[1] if text.endswith("1") else await _complete(model, message)
            texts[text] = answer.message.text

        with anyio.fail_after(_SECONDS):
            async with self.playing(lambda request: request.last.text) as model, anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(ask, model, f"number {number}")
        assert texts == {text: text for text in (f"number {number}" for number in range(20))}

    async def test_what_a_context_says_besides_may_be_ignored(self) -> None:
        async def report(retry: RetryReport) -> None:
            await anyio.lowlevel.checkpoint()
            raise AssertionError(f"nothing failed, and yet: {retry}")

        context = CallContext(
            conversation_id="conversation",
            prompt_cache_key="key",
            on_retry=report,
            first=True,
            response_schema=ResponseSchema("answer", {"type": "object", "properties": {}}),
            stop=("words that do not come",),
        )
        with anyio.fail_after(_SECONDS):
            async with self.playing(["one", "two"]) as model:
                assert (await _complete(model, context=context)).message.text == "one"
                assert (await _read(model, context=context))[1].message.text == "two"

    async def test_what_is_asked_may_be_any_sequence_and_stays_as_it_is(self) -> None:
        messages = [*_ASK, Message.assistant("Hm."), Message.user(TextBlock(text="And?"))]
        before = list(messages)
        with anyio.fail_after(_SECONDS):
            async with self.playing(["one", "two"]) as model:
                await model.complete(messages, [_READ])
                await model.complete(tuple(messages), (_READ,))
        assert messages == before

    async def test_the_features_are_known_or_said_to_be_unknown(self) -> None:
        with anyio.fail_after(_SECONDS):
            async with self.playing([]) as model:
                features = await model_features(model)
                assert features is None or isinstance(features, Features)
                assert await model_features(model) == features

    async def test_a_model_that_is_recorded_comes_back_with_the_same_record(self) -> None:
        with anyio.fail_after(_SECONDS):
            async with self.playing([]) as model:
                assert model.name
                recorded = record_model(model)
                if recorded is not None:
                    restored = restore_model(json.loads(json.dumps(recorded)))
                    assert restored.name == model.name
                    assert record_model(restored) == recorded
