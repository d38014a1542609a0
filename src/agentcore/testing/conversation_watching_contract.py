"""The part of the contract of conversations that is about watching: events, streams of a run, pieces of replies."""

from __future__ import annotations

import anyio

from agentcore.conversation import Conversation
from agentcore.errors import RunError
from agentcore.events import ConversationStatus, Event, MessageEvent
from agentcore.testing.conversation_place import (
    FINISHED,
    ConversationPlace,
    events_of,
    opened,
    raised,
    running,
    until,
)
from agentcore.testing.script import Gate, call, say
from agentcore.tools import ToolContext, tool


class WatchingContract:
    """The contract of watching; a part of `ConversationContract`."""

    async def test_events_are_replayed_and_then_followed_without_gap_or_double(self, place: ConversationPlace) -> None:
        seen: dict[str, list[Event]] = {}

        async def follow(name: str, conversation: Conversation, after: int | None) -> None:
            seen[name] = []
            async for event in conversation.events(after):
                seen[name].append(event)

        async with opened(place, [say("one"), say("two")]) as conversation:
            await conversation.run("1")
            middle = conversation.state.head
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow, "all", conversation, None)
                tasks.start_soon(follow, "rest", conversation, middle)
                await conversation.run("2")
                await conversation.close()
            # They ended by themselves: nothing comes after the close.
            events = list(conversation.state.events)
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert seen["all"] == events
            assert seen["rest"] == events[middle:]

    async def test_the_log_read_beside_it_folds_to_the_same_state(self, place: ConversationPlace) -> None:
        @tool
        async def ping() -> str:
            """Ping."""
            await anyio.lowlevel.checkpoint()
            return "pong" * 30_000

        async with opened(place, [call("ping"), say("done"), say("again")], ping, id="twin") as conversation:
            await conversation.run("go")
            await conversation.set_title("A title")
            await conversation.run("x" * 100_000)
            twin = await place.read_state("twin")
            assert list(twin.events) == list(conversation.state.events)
            assert twin.snapshot() == conversation.state.snapshot()
        closed = await place.read_state("twin")
        assert closed.snapshot() == conversation.state.snapshot()

    async def test_the_events_of_a_run_come_as_they_are_and_end_with_it(self, place: ConversationPlace) -> None:
        gate = Gate()
        async with opened(place, [gate.hold(say("Hello!")), say("more")]) as conversation:
            before = conversation.state.head
            stream = conversation.run_stream("Hi")
            first = await anext(stream)
            assert isinstance(first, MessageEvent)
            assert first.seq == before + 1
            await gate.arrived()
            gate.open()
            events = [first, *[event async for event in stream]]
            assert stream.result.text == "Hello!"
            assert [event.seq for event in events] == list(range(before + 1, stream.result.last_seq + 1))

    async def test_breaking_off_the_events_of_a_run_leaves_it_running(self, place: ConversationPlace) -> None:
        gate = Gate()
        async with opened(place, [gate.hold(say("Hello!"))]) as conversation:
            async for _ in conversation.run_stream("Hi"):
                break
            await gate.arrived()
            assert conversation.state.status is ConversationStatus.RUNNING
            gate.open()
            await until(conversation, lambda: conversation.state.status is FINISHED)
            assert conversation.state.answer == "Hello!"

    async def test_the_events_of_a_run_that_fails_end_in_its_error(self, place: ConversationPlace) -> None:
        async def read(conversation: Conversation) -> None:
            async for _ in conversation.run_stream("Hi"):
                pass

        def broken(request: object) -> str:
            del request
            raise ZeroDivisionError("a fault of the script")

        async with opened(place, broken) as conversation:
            failed = await raised(RunError, read(conversation))
            assert failed.result.status is ConversationStatus.ERROR

    async def test_words_come_piece_by_piece(self, place: ConversationPlace) -> None:
        gate = Gate()
        words = "one two three"
        async with opened(place, [gate.hold(say(words), after=2)]) as conversation:
            deltas = conversation.deltas()
            async with running(conversation) as begun:
                text = ""
                while text != "one two":
                    delta = await anext(deltas)
                    if delta.type == "text":
                        assert delta.offset == len(text)
                        text += delta.text
                assert conversation.state.answer is None
                gate.open()
                while text != words:
                    text += (await anext(deltas)).text
            assert begun.result.text == words
            (reply,) = [event for event in events_of(conversation, MessageEvent) if event.source == "agent"]
            assert reply.message.text == words

    async def test_progress_of_a_tool_is_shown_and_not_kept(self, place: ConversationPlace) -> None:
        released = anyio.Event()

        @tool
        async def work(ctx: ToolContext) -> str:
            """Work."""
            await ctx.progress("half of it")
            await released.wait()
            return "all of it"

        async with opened(place, [call("work"), say("done")], work) as conversation:
            deltas = conversation.deltas()
            async with running(conversation) as begun:
                shown = ""
                while shown != "half of it":
                    delta = await anext(deltas)
                    if delta.type == "progress":
                        assert delta.tool_name == "work"
                        shown += delta.text
                released.set()
            assert begun.result.text == "done"
            assert "half of it" not in str(list(conversation.state.events))
