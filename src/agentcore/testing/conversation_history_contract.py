"""The part of the contract of conversations that is about the log: branches, settings, secrets, resuming, deleting."""

from __future__ import annotations

from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from agentcore.errors import ConversationNotFound, LimitReached, RewindRefused
from agentcore.events import (
    Condensation,
    MessageEvent,
    ObservationEvent,
    UsageEvent,
    WorkspaceCheckpointed,
    WorkspaceRestored,
)
from agentcore.testing.conversation_place import (
    FINISHED,
    IDLE,
    ConversationPlace,
    actions_of,
    agent_of,
    events_of,
    opened,
    raised,
)
from agentcore.testing.script import Request, ScriptedReply, call, say
from agentcore.tools import ToolContext, tool
from agentcore.usage import Limits, Usage

_TOKEN = "tok-93f1-ab-and-more"  # noqa: S105 it opens nothing


def _count(request: Request) -> ScriptedReply:
    """Answer with the user's messages that are shown."""
    return say(" ".join(message.text for message in request.messages if message.role == "user"))


@tool
async def use(url: str, ctx: ToolContext) -> str:
    """Use a token that the program keeps."""
    return f"{url}: {await ctx.secrets.get('TOKEN')}"


class HistoryContract:
    """The contract of the log; a part of `ConversationContract`."""

    async def test_a_side_question_leaves_no_trace_but_its_usage(self, place: ConversationPlace) -> None:
        async with opened(place, _count) as conversation:
            await conversation.run("one")
            shown = list(conversation.state.shown)
            assert "why?" in await conversation.ask("why?")
            assert list(conversation.state.shown) == shown
            assert len(events_of(conversation, UsageEvent)) == 2
            assert (await conversation.run("two")).text == "one two"

    async def test_a_budget_that_is_used_up_leaves_no_side_question(self, place: ConversationPlace) -> None:
        script = [say("one", usage=Usage(input_tokens=600))]
        async with opened(place, script, limits=Limits(tokens=500)) as conversation:
            await conversation.run("1")
            error = await raised(LimitReached, conversation.ask("why?"))
            assert error.code == "tokens"

    async def test_a_history_is_made_shorter_where_that_frees_something(self, place: ConversationPlace) -> None:
        def answer(request: Request) -> ScriptedReply:
            words = request.last.text
            return say("words-" * 2_000 if words.startswith("number") else "A summary of it all.")

        async with opened(place, answer) as conversation:
            await conversation.run("number 0")
            for number in range(1, 5):
                await conversation.run(f"number {number}")
            cut = await conversation.condense()
            assert cut is not None
            assert cut == events_of(conversation, Condensation)[0]
            assert cut.summary is not None
            assert "A summary of it all." in cut.summary
            assert (await conversation.run("number 5")).status is FINISHED

    async def test_a_short_history_stays_as_it_is(self, place: ConversationPlace) -> None:
        async with opened(place, [say("one"), say("a summary")]) as conversation:
            await conversation.run("1")
            assert await conversation.condense() is None
            assert not events_of(conversation, Condensation)

    async def test_going_back_begins_another_branch(self, place: ConversationPlace) -> None:
        async with opened(place, _count) as conversation:
            first = await conversation.run("one")
            second = await conversation.run("two")
            assert second.text == "one two"
            await conversation.rewind(first.last_seq)
            assert conversation.state.status is IDLE
            third = await conversation.run("three")
            assert third.text is not None
            assert "two" not in third.text
            assert third.text.endswith("three")
            texts = [event.message.text for event in events_of(conversation, MessageEvent)]
            assert "one two" in texts, "the log keeps what was left"

    async def test_going_back_with_files_brings_those_of_the_checkpoint_back(self, place: ConversationPlace) -> None:
        async with opened(place, _count) as conversation:
            workspace = conversation.workspace
            await workspace.write("kept", "1")
            first = await conversation.run("one")
            saved = await conversation.checkpoint()
            assert saved == events_of(conversation, WorkspaceCheckpointed)[0]
            await workspace.write("kept", "2")
            await workspace.write("later", "2")
            await conversation.run("two")
            await conversation.rewind(first.last_seq, files=True)
            assert await workspace.read("kept") == b"1"
            assert await workspace.stat("later") is None
            assert [event.error for event in events_of(conversation, WorkspaceRestored)] == [None]
            refused = await raised(RewindRefused, conversation.rewind(0, files=True))
            assert "no checkpoint" in str(refused)

    async def test_a_point_that_is_not_settled_is_refused_and_the_nearest_one_named(
        self, place: ConversationPlace
    ) -> None:
        @tool
        async def ping() -> str:
            """Ping."""
            await checkpoint()
            return "pong"

        async with opened(place, [call("ping"), say("done")], ping) as conversation:
            await conversation.run("go")
            (action,) = actions_of(conversation)
            head = conversation.state.head
            refused = await raised(RewindRefused, conversation.rewind(action.seq))
            assert refused.nearest is not None
            assert conversation.state.is_settled(refused.nearest)
            assert (await raised(RewindRefused, conversation.fork(action.seq))).nearest == refused.nearest
            assert conversation.state.head == head

    async def test_a_fork_is_a_log_of_its_own(self, place: ConversationPlace) -> None:
        async with opened(place, _count) as conversation:
            first = await conversation.run("one")
            await conversation.run("two")
            fork = await conversation.fork(first.last_seq, id="forked")
            assert fork == "forked"
            assert conversation.id != fork
        copied = await place.read_state(fork)
        assert [event.message.text for event in events_of(copied, MessageEvent)] == ["one", "one"]
        async with opened(place, _count, id=fork) as conversation:
            assert (await conversation.run("three")).text == "one three"

    async def test_what_is_set_is_in_the_state(self, place: ConversationPlace) -> None:
        async with opened(place, _count, id="set") as conversation:
            await conversation.set_title("A title")
            await conversation.set_tags({"project": "x", "kind": "test"})
            await conversation.set_tags({"project": "y"})
            await conversation.set_limits(Limits(steps=7))
            state = conversation.state
            assert (state.title, dict(state.tags), state.limits) == ("A title", {"project": "y"}, Limits(steps=7))
        state = await place.read_state("set")
        assert (state.title, dict(state.tags), state.limits) == ("A title", {"project": "y"}, Limits(steps=7))

    async def test_another_agent_works_from_the_next_step_on(self, place: ConversationPlace) -> None:
        async with opened(place, [say("I am the first.")]) as conversation:
            assert (await conversation.run("who?")).text == "I am the first."
            await conversation.set_agent(agent_of(place, [say("I am the second.")]))
            assert (await conversation.run("who?")).text == "I am the second."

    async def test_a_secret_reaches_tools_and_nobody_else(self, place: ConversationPlace) -> None:
        sent: list[str] = []
        asked: list[str] = []

        def last(request: Request) -> ScriptedReply:
            sent.extend(request.answers)
            return say(f"I used {_TOKEN}")

        async def from_vault() -> str:
            await checkpoint()
            asked.append("vault")
            return _TOKEN

        async with opened(
            place, [call("use", url="a"), last], use, secrets={"TOKEN": from_vault}, id="secret"
        ) as conversation:
            assert not asked, "a source is asked when a value is needed, not before"
            result = await conversation.run("go")
            assert result.text == "I used <secret:TOKEN>"
            (answer,) = events_of(conversation, ObservationEvent)
            assert answer.text == "a: <secret:TOKEN>"
            assert conversation.state.secret_names == ("TOKEN",)
        assert asked
        assert sent == ["a: <secret:TOKEN>"]
        assert _TOKEN not in str(list((await place.read_state("secret")).events))

    async def test_secrets_can_be_added(self, place: ConversationPlace) -> None:
        script = [call("use", url=f"http://x/{_TOKEN}"), say("done")]
        async with opened(place, script, use) as conversation:
            await conversation.add_secrets({"TOKEN": _TOKEN})
            await conversation.run(f"My token is {_TOKEN}.")
            (action,) = actions_of(conversation)
            arguments: dict[str, JsonValue] = {"url": "http://x/<secret:TOKEN>"}
            assert action.arguments == arguments
            assert _TOKEN not in str(list(conversation.state.events))

    async def test_a_conversation_goes_on_by_its_id(self, place: ConversationPlace) -> None:
        async with opened(place, _count, id="again") as conversation:
            assert conversation.id == "again"
            await conversation.run("one")
            before = list(conversation.state.events)
        async with opened(place, _count, id="again") as conversation:
            assert list(conversation.state.events)[: len(before)] == before
            assert conversation.state.answer == "one"
            assert (await conversation.run("two")).text == "one two"

    async def test_a_deleted_conversation_is_gone(self, place: ConversationPlace) -> None:
        async with opened(place, _count, id="gone") as conversation:
            await conversation.run("one")
            await conversation.delete()
            assert conversation.state.answer == "one"
            await raised(ConversationNotFound, place.read_state("gone"))
