"""Tools for models that were not made to call them: the calls travel in the words."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from pydantic import JsonValue

from agentcore.llm.model import CallContext, DeltaStream, Features, Model, model_features, record_model
from agentcore.llm.reply import Delta, ReasoningDelta, Reply, ResetDelta, TextDelta, ToolCallDelta
from agentcore.llm.text_calls.prompt import tools_prompt, write_messages
from agentcore.llm.text_calls.stream import CallBegan, CallEnded, Piece, TextDecoder, Thinking, WasThinking, Words
from agentcore.llm.wrapper import BufferedStream, ModelRequest, WrapperModel
from agentcore.messages import Block, Message, TextBlock, ThinkingBlock, ToolCallBlock, ToolSchema

_STOP: Final = "</function"
_ENDED: Final = frozenset({"end", "stop_sequence", "tool_calls"})


@dataclass(frozen=True, slots=True)
class TextToolCalls(WrapperModel):
    """A model that calls tools in its words, made one that calls them as any does.

    The system prompt describes the tools and how to call them, earlier calls and results are written as words, and the
    calls in a reply's words become `ToolCallBlock`s, while they stream as well. A call that can't be read has its text as
    its arguments, so that the model learns of it as of any arguments that cannot be parsed.
    """

    model: Model
    stop: bool = True
    """Ask that the reply ends where a call does (`CallContext.stop`), so that the model cannot make up its result.
    Then a reply holds one call."""

    async def _complete(self, request: ModelRequest) -> Reply:
        call = _Call(request.messages, request.tools)
        return call.read(await self._inner(request, call).complete(self.model))

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        call = _Call(request.messages, request.tools)
        async with self._inner(request, call).stream(self.model) as deltas:
            yield _TextStream(call, deltas)

    async def get_features(self) -> Features | None:
        """Return what the model inside can do, and that it calls tools and is held to no schema."""
        features = await model_features(self.model)
        return features and features.model_copy(update={"tool_calls": True, "response_schema": False})

    def record(self) -> dict[str, JsonValue] | None:
        """Write down the model inside and `stop`."""
        inner = record_model(self.model)
        return inner and {"kind": "text_calls", "model": inner, "stop": self.stop}

    @classmethod
    def from_record(cls, recorded: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], Model]) -> Self:
        """Make it again of what `record` gave."""
        return cls(restore(recorded["model"]), bool(recorded["stop"]))

    def _inner(self, request: ModelRequest, call: _Call) -> ModelRequest:
        """Return the request for the model inside, which has no tools."""
        context = request.context
        if request.tools:
            context = context or CallContext()
            # A reply that follows a schema could hold no call.
            stop = (*context.stop, _STOP) if self.stop else context.stop
            context = replace(context, response_schema=None, stop=stop)
        return ModelRequest(call.messages, context=context)


class _Call:
    """One call of the model: the messages it is sent, and the decoder of its text."""

    def __init__(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> None:
        self._tools: Mapping[str, ToolSchema] = {tool.name: tool for tool in tools}
        self._turn = sum(message.role == "assistant" for message in messages) + 1
        self.messages = write_messages(messages, self._tools, tools_prompt(tools) if tools else "")

    def decoder(self) -> TextDecoder | None:
        """Return a new reader; None where there is nothing to call."""
        return TextDecoder(self._tools) if self._tools else None

    def call_id(self, number: int) -> str:
        """Name the call number `number`, from 1: the same conversation always gives the same names."""
        return f"call_{self._turn}_{number}"

    def read(self, reply: Reply) -> Reply:
        """Make blocks of the calls in the words."""
        decoder = self.decoder()
        if decoder is None:
            return reply
        reading = _Reading(self)
        for block in reply.message.content:
            if isinstance(block, TextBlock):
                for piece in decoder.feed(block.text):
                    reading.take(piece)
            else:
                reading.add(block)
        for piece in decoder.finish(cut_off=reply.stop_reason == "length"):
            reading.take(piece)
        if reading.words == "".join(block.text for block in reply.message.content if isinstance(block, TextBlock)):
            return reply  # nothing but words, in the blocks they came in
        reason = reply.stop_reason
        if reason in _ENDED:
            reason = "tool_calls" if any(isinstance(block, ToolCallBlock) for block in reading.content) else "end"
        message = reply.message.model_copy(update={"content": tuple(reading.content)})
        return reply.model_copy(update={"message": message, "stop_reason": reason})


class _Reading:
    """The blocks of a reply, as they come to light."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._calls = 0
        self.content: list[Block] = []
        self.words = ""
        """The text that was shown."""

    def add(self, block: Block) -> None:
        self._calls += isinstance(block, ToolCallBlock)
        self.content.append(block)

    def take(self, piece: Piece) -> None:
        last = self.content[-1] if self.content else None
        match piece:
            case Words(text):
                self.words += text
                if isinstance(last, TextBlock):
                    self.content[-1] = TextBlock(text=last.text + text)
                else:
                    self.content.append(TextBlock(text=text))
            case Thinking(text):
                # Not joined to thinking of the model's own, which may be signed.
                if isinstance(last, ThinkingBlock) and last.signature is None:
                    self.content[-1] = ThinkingBlock(text=last.text + text)
                else:
                    self.content.append(ThinkingBlock(text=text))
            case WasThinking():
                self.content = [
                    ThinkingBlock(text=block.text) if isinstance(block, TextBlock) else block for block in self.content
                ]
            case CallBegan():
                pass
            case CallEnded(name, arguments):
                self.add(ToolCallBlock(id=self._call.call_id(self._calls + 1), name=name, arguments=arguments))


class _TextStream(BufferedStream):
    """Deltas of text, thinking and calls, separated while they come."""

    def __init__(self, call: _Call, inner: DeltaStream) -> None:
        super().__init__()
        self._call = call
        self._inner = inner
        self._begin()

    def _begin(self) -> None:
        self._reader = self._call.decoder()
        self._calls = 0
        self._own: dict[int, int] = {}
        self._thoughts = ""
        self._words = ""

    async def _fill(self) -> None:
        try:
            delta = await anext(self._inner)
        except StopAsyncIteration:
            reply = self._inner.reply
            if self._reader is not None:
                self._show(self._reader.finish(cut_off=reply.stop_reason == "length"))
            self._reply = self._call.read(reply)
        else:
            self._take(delta)

    def _take(self, delta: Delta) -> None:
        match delta:
            case TextDelta(text=text) if self._reader is not None:
                self._show(self._reader.feed(text))
                return
            case ReasoningDelta(text=text):
                self._thoughts += text
            case ToolCallDelta(index=index):
                # A model that can call tools after all.
                if index not in self._own:
                    self._own[index] = self._calls
                    self._calls += 1
                delta = delta.model_copy(update={"index": self._own[index]})
            case ResetDelta():
                self._begin()
            case _:
                pass
        self._deltas.append(delta)

    def _show(self, pieces: Iterator[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Words(text):
                    self._words += text
                    self._deltas.append(TextDelta(text=text))
                case Thinking(text):
                    self._thoughts += text
                    self._deltas.append(ReasoningDelta(text=text))
                case WasThinking():
                    self._thoughts += self._words
                    self._deltas.append(ResetDelta(reason="The words so far were the model's thinking."))
                    self._deltas.append(ReasoningDelta(text=self._thoughts))
                case CallBegan(name):
                    number = self._calls + 1
                    self._deltas.append(ToolCallDelta(index=self._calls, id=self._call.call_id(number), name=name))
                case CallEnded(_, arguments):
                    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
                    self._deltas.append(ToolCallDelta(index=self._calls, arguments=written))
                    self._calls += 1
