"""The contract of models finds what it is there to find."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, cast

import anyio
import anyio.lowlevel
import pytest
from pydantic import JsonValue

from agentcore.errors import ModelError
from agentcore.llm import CallContext, Delta, DeltaStream, Features, Model, Reply, TextDelta
from agentcore.messages import Message, ToolSchema
from agentcore.testing import ModelContract, Request, ScriptedLLM, ScriptLine

Lines = Iterable[ScriptLine] | Callable[[Request], ScriptLine]


class Passing:
    """A model that passes everything on; each wrong one changes one thing."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self.name = inner.name

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        return await self.inner.complete(messages, tools, context=context)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AsyncGenerator[DeltaStream]:
        async with self.inner.stream(messages, tools, context=context) as stream:
            yield stream

    async def get_features(self) -> Features | None:
        await anyio.lowlevel.checkpoint()
        return None

    def record(self) -> dict[str, JsonValue] | None:
        return None


class Replaced:
    """A stream that passes everything on, but for its reply."""

    def __init__(self, inner: DeltaStream, reply: Callable[[], Reply] | None = None) -> None:
        self.inner = inner
        self._reply = reply or (lambda: inner.reply)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        return await anext(self.inner)

    @property
    def reply(self) -> Reply:
        return self._reply()


class ForgetsTheCalls(Passing):
    async def complete(self, *args: Any, **kwargs: Any) -> Reply:
        reply = await super().complete(*args, **kwargs)
        return reply.model_copy(update={"message": Message.assistant(reply.message.text)})


class SaysOtherwiseWhenStreamed(Passing):
    @asynccontextmanager
    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[DeltaStream]:
        async with super().stream(*args, **kwargs) as stream:
            changes = {"stop_reason": "end", "message": Message.assistant("otherwise")}
            yield Replaced(stream, lambda: stream.reply.model_copy(update=changes))


class LosesADelta(Passing):
    @asynccontextmanager
    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[DeltaStream]:
        async with super().stream(*args, **kwargs) as stream:
            await anext(stream)
            yield stream


class AnswersTooEarly(Passing):
    @asynccontextmanager
    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[DeltaStream]:
        reply = await self.inner.complete(*args, **kwargs)
        async with ScriptedLLM([reply.message]).stream(*args) as stream:
            yield Replaced(stream, lambda: reply)


class RaisesWhatItLikes(Passing):
    async def complete(self, *args: Any, **kwargs: Any) -> Reply:
        try:
            return await super().complete(*args, **kwargs)
        except ModelError as error:
            raise ValueError(str(error)) from error


class KeepsALock(Passing):
    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self.held = False

    async def complete(self, *args: Any, **kwargs: Any) -> Reply:
        if self.held:
            raise RuntimeError("nobody gives the lock back")
        self.held = True
        reply = await super().complete(*args, **kwargs)
        self.held = False
        return reply


class ChangesWhatItIsAsked(Passing):
    async def complete(self, messages: Any, *args: Any, **kwargs: Any) -> Reply:
        if isinstance(messages, list):
            cast("list[Message]", messages).append(Message.user("More."))
        return await super().complete(cast("list[Message]", messages), *args, **kwargs)


class HasAnotherRecordEachTime(Passing):
    def record(self) -> dict[str, JsonValue] | None:
        return {"model": "openai/x", "temperature": 0.5}


class SaysItTwice(Passing):
    @asynccontextmanager
    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[DeltaStream]:
        async with super().stream(*args, **kwargs) as stream:
            yield Twice(stream)


class Twice(Replaced):
    ended = False

    async def __anext__(self) -> Delta:
        try:
            return await anext(self.inner)
        except StopAsyncIteration:
            if self.ended:
                raise
            self.ended = True
            return TextDelta(text="and again")


def contract_of(model: Callable[[Model], Model]) -> ModelContract:
    class Contract(ModelContract):
        @asynccontextmanager
        async def playing(self, lines: Lines, *, repeat: bool = False) -> AsyncGenerator[Model]:
            yield model(ScriptedLLM(lines, repeat=repeat))

    return Contract()


async def fails(test: Callable[[], Awaitable[None]]) -> bool:
    try:
        await test()
    except Exception:
        return True
    return False


async def test_a_model_that_keeps_to_it_passes() -> None:
    contract = contract_of(Passing)
    tests = [test for name, test in inspect.getmembers(contract, inspect.ismethod) if name.startswith("test_")]
    assert len(tests) >= 12
    assert [test.__name__ for test in tests if await fails(test)] == []


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (ForgetsTheCalls, "test_a_reply_has_what_the_model_said_and_what_it_used"),
        (SaysOtherwiseWhenStreamed, "test_a_stream_comes_to_the_same_reply"),
        (LosesADelta, "test_the_deltas_of_a_stream_add_up_to_its_reply"),
        (SaysItTwice, "test_the_deltas_of_a_stream_add_up_to_its_reply"),
        (AnswersTooEarly, "test_a_stream_has_no_reply_before_its_end"),
        (RaisesWhatItLikes, "test_an_error_is_the_same_whether_streamed_or_not"),
        (KeepsALock, "test_a_call_that_is_cancelled_at_any_point_leaves_nothing_behind"),
        (ChangesWhatItIsAsked, "test_what_is_asked_may_be_any_sequence_and_stays_as_it_is"),
        (HasAnotherRecordEachTime, "test_a_model_that_is_recorded_comes_back_with_the_same_record"),
    ],
)
async def test_a_model_that_does_not_is_found(wrong: Callable[[Model], Model], found: str) -> None:
    assert await fails(getattr(contract_of(wrong), found))
