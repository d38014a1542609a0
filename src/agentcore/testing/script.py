"""Scripts of models: the replies that tests and demos write.

    ScriptedLLM([
        call("terminal", command="ls"),                        # one tool call
        calls(call("read", path="a"), call("read", path="b")),  # several at once
        RateLimited("slow down", retry_after=2),               # an error
        lambda request: say(f"{len(request.messages)} messages"),
        "Done.",                                               # the same as say("Done.")
    ])

The same script plays in the process (`ScriptedLLM`) and over HTTP (`serve_provider`).
"""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import anyio
import anyio.lowlevel
from pydantic import JsonValue

from agentcore.errors import ModelConnectionError, ScriptExhausted
from agentcore.llm import CallContext, Delta, Reply, ResetDelta, ToolCallDelta, deltas_of
from agentcore.messages import Block, Message, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from agentcore.usage import Usage


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the model."""

    messages: Sequence[Message]
    """As they were then: what the conversation adds later is not in it."""
    tools: tuple[ToolSchema, ...] = ()
    context: CallContext | None = None

    @property
    def last(self) -> Message:
        """The last message."""
        return self.messages[-1]

    @property
    def answers(self) -> tuple[str, ...]:
        """The answers of the tools to the calls of the last reply, as text."""
        latest = itertools.takewhile(lambda message: message.role == "tool", reversed(self.messages))
        blocks = [block for message in reversed(list(latest)) for block in message.content]
        return tuple(block.text for block in blocks if isinstance(block, ToolResultBlock))


@dataclass(frozen=True, slots=True)
class _Interlude:
    """Something that happens in the middle of a reply, before the delta of this index."""

    index: int
    act: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """A scripted reply. Made by `say`, `call` and `calls`."""

    content: tuple[Block, ...]
    usage: Usage | None = None
    stop_reason: str | None = None
    interludes: tuple[_Interlude, ...] = ()
    just_ends: bool = False
    """True if, where it breaks off, it looks like one that ended (over HTTP: a sound response, without a last word)."""

    def reply(self, name: str, number: int) -> Reply:
        """Make it the reply number `number` of the model `name`."""
        reason = "tool_calls" if any(isinstance(block, ToolCallBlock) for block in self.content) else "end"
        return Reply(
            message=Message(role="assistant", content=_with_call_ids(self.content, number)),
            usage=(self.usage or Usage()).model_copy(update={"requests": 1}),
            stop_reason=self.stop_reason or reason,
            model=name,
            provider_id=f"reply_{number}",
        )


ScriptLine = str | ScriptedReply | Message | BaseException | Callable[["Request"], "ScriptLine | Awaitable[ScriptLine]"]
"""Anything that a script may hold: words, a reply, an error to raise, or a (possibly async) function of the request
that gives any of these."""


def say(
    text: str, *, thinking: str | None = None, usage: Usage | None = None, stop_reason: str | None = None
) -> ScriptedReply:
    """Answer in words."""
    return ScriptedReply(_spoken(text, thinking), usage, stop_reason)


def call(name: str, /, **arguments: JsonValue) -> ScriptedReply:
    """Ask for one tool."""
    return ScriptedReply((ToolCallBlock(id="", name=name, arguments=arguments),))


def calls(
    *calls: ScriptedReply | ToolCallBlock,
    text: str | None = None,
    thinking: str | None = None,
    usage: Usage | None = None,
    stop_reason: str | None = None,
) -> ScriptedReply:
    """Ask for several tools at once, or for one with words, thinking or usage besides.

    A `ToolCallBlock` in place of a `call` says everything itself: its id, or text that is not JSON as its arguments.
    """
    blocks = [block for one in calls for block in (one.content if isinstance(one, ScriptedReply) else (one,))]
    return ScriptedReply((*_spoken(text, thinking), *blocks), usage, stop_reason)


def truncated(line: str | ScriptedReply, *, after: int = 1, error: BaseException | None = None) -> ScriptedReply:
    """Break a reply off after so many deltas: with this error, or (by default) just ending, as if it were whole."""
    scripted = _scripted_reply(line)
    raised = error or ModelConnectionError("The stream ended before the reply was complete.")

    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise raised

    return replace(scripted, interludes=(*scripted.interludes, _Interlude(after, fail)), just_ends=error is None)


async def hang(request: Request) -> ScriptLine:
    """Never answer: a script line for a model that takes the request and says nothing until it is cancelled."""
    del request
    await anyio.sleep_forever()
    raise AssertionError("sleep_forever returned")


class Gate:
    """Holds replies back until it is opened, so that a test can look at a conversation while its model thinks.

    gate = Gate()
    model = ScriptedLLM([gate.hold(say("Hello there"), after=1)])
    ...
    await gate.arrived()  # the model has said its first delta and waits
    gate.open()
    """

    def __init__(self) -> None:
        self._opened = anyio.Event()
        self._waiting = 0
        self._moved = anyio.Event()

    def hold(self, line: ScriptLine, *, after: int = 0) -> ScriptLine:
        """Make a line that waits at the gate; with `after`, once it has said so many deltas."""
        if after:
            if not isinstance(line, str | ScriptedReply):
                raise TypeError(f"Only words and calls can be held in their middle, not {line!r}.")
            scripted = _scripted_reply(line)
            return replace(scripted, interludes=(*scripted.interludes, _Interlude(after, self._pass)))

        async def held(request: Request) -> ScriptLine:
            del request
            await self._pass()
            return line

        return held

    async def _pass(self) -> None:
        self._waiting += 1
        self._tell()
        try:
            await self._opened.wait()
        finally:
            self._waiting -= 1
            self._tell()

    def _tell(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    async def arrived(self, count: int = 1) -> None:
        """Wait until so many replies stand at the gate."""
        while self._waiting < count:
            await self._moved.wait()

    async def left(self) -> None:
        """Wait until no reply waits at the gate."""
        while self._waiting:
            await self._moved.wait()

    def open(self) -> None:
        """Let all pass, now and later."""
        self._opened.set()


class Playback:
    """One reply being said, delta by delta, with what happens in between."""

    def __init__(self, scripted: ScriptedReply, reply: Reply) -> None:
        self.scripted = scripted
        self.reply = reply
        self._deltas = _deltas(reply.message)
        self._index = 0

    async def next(self) -> Delta | None:
        """Return the next delta, or None after the last one.

        Raises:
            BaseException: The script breaks the reply off here.
        """
        await self._interludes(self._index)
        delta = next(self._deltas, None)
        self._index += 1
        if delta is None:
            # What was to happen later than the reply is long happens at its end.
            await self._interludes(self._index, last=True)
        return delta

    async def _interludes(self, index: int, *, last: bool = False) -> None:
        for interlude in self.scripted.interludes:
            if interlude.index == index or (last and interlude.index > index):
                await interlude.act()


class Script:
    """The lines in order, each played once. One script is one model's part: share it and the lines are shared too."""

    def __init__(
        self, lines: Iterable[ScriptLine] | Callable[[Request], ScriptLine], *, name: str, repeat: bool = False
    ) -> None:
        if callable(lines):
            lines, repeat = [lines], True
        elif isinstance(lines, list | tuple):
            for line in cast("Sequence[object]", lines):
                _refuse_other_than_line(line)
        self._lines: Iterator[ScriptLine] = itertools.cycle(lines) if repeat else iter(lines)
        self._name = name
        self.played = 0
        """Lines played so far."""

    async def next(self, request: Callable[[], Request]) -> Playback:
        """Play the next line; the request is only made for a line that is a function of it.

        Raises:
            ScriptExhausted: There is none.
            BaseException: The line is an error.
        """
        try:
            line = next(self._lines)
        except StopIteration:
            raise ScriptExhausted(self.played) from None
        self.played += 1
        number = self.played
        while not isinstance(line, str | ScriptedReply | Message | BaseException):
            answer = line(request())
            line = await answer if inspect.isawaitable(answer) else answer
        if isinstance(line, BaseException):
            raise line
        scripted = _scripted_reply(line)
        return Playback(scripted, scripted.reply(self._name, number))


def _refuse_other_than_line(line: object) -> None:
    if isinstance(line, list | tuple):
        raise TypeError(
            "A reply is one line: several calls of one reply are calls(call(...), call(...)), not a list of them."
        )
    if not isinstance(line, str | ScriptedReply | Message | BaseException) and not callable(line):
        raise TypeError(f"{line!r} is not a reply: use say(...), call(...), calls(...), an exception, or a function.")


def _scripted_reply(line: str | ScriptedReply | Message) -> ScriptedReply:
    if isinstance(line, str):
        return say(line)
    if isinstance(line, Message):
        return ScriptedReply(line.content)
    return line


def _spoken(text: str | None, thinking: str | None) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if thinking is not None:
        blocks.append(ThinkingBlock(text=thinking))
    if text is not None:
        blocks.append(TextBlock(text=text))
    return tuple(blocks)


def _with_call_ids(content: tuple[Block, ...], number: int) -> tuple[Block, ...]:
    return tuple(
        block.model_copy(update={"id": f"call_{number}_{position}"})
        if isinstance(block, ToolCallBlock) and not block.id
        else block
        for position, block in enumerate(content)
    )


def _deltas(message: Message) -> Iterator[Delta]:
    for delta in deltas_of(message):
        if isinstance(delta, ToolCallDelta):
            yield delta.model_copy(update={"arguments": ""})
            yield from (ToolCallDelta(index=delta.index, arguments=piece) for piece in _pieces(delta.arguments))
        elif not isinstance(delta, ResetDelta):
            yield from (delta.model_copy(update={"text": piece}) for piece in _pieces(delta.text))


def arguments_text(block: ToolCallBlock) -> str:
    """The arguments as a model would write them."""
    return block.arguments if isinstance(block.arguments, str) else json.dumps(block.arguments)


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for end in range(1, len(text)):
        if text[end].isspace() and not text[end - 1].isspace():
            yield text[start:end]
            start = end
    if text:
        yield text[start:]
