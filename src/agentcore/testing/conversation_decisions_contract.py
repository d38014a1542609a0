"""The part of the contract of conversations that is about people: approvals, questions, and the program's callbacks."""

from __future__ import annotations

import anyio
from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from agentcore.conversation import Answered, Conversation, Declined
from agentcore.errors import AnswerRefused, NothingPending, ToolArgumentsError
from agentcore.events import (
    ActionApproved,
    ObservationEvent,
    QuestionAnswered,
    QuestionAsked,
    UserRejectObservation,
)
from agentcore.security import AlwaysConfirm, Approve, NeverConfirm, RatedAction, Reject
from agentcore.testing.conversation_place import (
    FINISHED,
    WAITING,
    ConversationPlace,
    actions_of,
    events_of,
    opened,
    raised,
    running,
    until,
)
from agentcore.testing.script import Request, ScriptedReply, call, calls, say
from agentcore.tools import AnyTool, ask_user, tool

_PORT: dict[str, JsonValue] = {"type": "integer", "minimum": 1}
_ASK = call("ask_user", text="Which host?")
_ASK_PORT = call("ask_user", text="Which port?", answer_schema=_PORT)


def changing(done: list[str]) -> AnyTool:
    """Make a tool that notes what it was called with."""

    @tool
    async def change(name: str) -> str:
        """Change something."""
        await checkpoint()
        done.append(name)
        return f"changed {name}"

    return change


def _observations(conversation: Conversation) -> list[str]:
    return [event.text for event in events_of(conversation, ObservationEvent)]


class DecisionsContract:
    """The contract of approvals and questions; a part of `ConversationContract`."""

    async def test_an_action_waits_until_it_is_approved(self, place: ConversationPlace) -> None:
        done: list[str] = []
        script = [call("change", name="Rome"), say("done")]
        async with opened(place, script, changing(done), confirm=AlwaysConfirm()) as conversation:
            result = await conversation.run("go")
            assert (result.status, [action.tool_name for action in result.pending]) == (WAITING, ["change"])
            assert (done, conversation.state.pending) == ([], result.pending)
            assert (await conversation.run()).pending == result.pending
            await conversation.approve(by="Ada")
            assert not conversation.state.pending
            assert (await conversation.run()).text == "done"
            (approved,) = events_of(conversation, ActionApproved)
            assert approved.cause == result.pending[0].id
        assert done == ["Rome"]

    async def test_arguments_may_be_changed_and_have_to_fit_the_tool(self, place: ConversationPlace) -> None:
        done: list[str] = []
        script = [call("change", name="Rome"), say("done")]
        async with opened(place, script, changing(done), confirm=AlwaysConfirm()) as conversation:
            (action,) = (await conversation.run("go")).pending
            wrong = await raised(ToolArgumentsError, conversation.approve(action.id, {"nmae": "Oslo"}))
            assert "nmae" in str(wrong)
            assert conversation.state.pending == (action,)
            await conversation.approve(action.id, {"name": "Oslo"})
            assert (await conversation.run()).text == "done"
            assert "Oslo" in _observations(conversation)[0]
        assert done == ["Oslo"]

    async def test_one_of_two_can_be_approved_and_the_other_rejected(self, place: ConversationPlace) -> None:
        done: list[str] = []
        read: list[str] = []

        def last(request: Request) -> ScriptedReply:
            read.extend(request.answers)
            return say("done")

        script = [calls(call("change", name="Rome"), call("change", name="Oslo")), last]
        async with opened(place, script, changing(done), confirm=AlwaysConfirm()) as conversation:
            rome, oslo = (await conversation.run("go")).pending
            await conversation.reject("too far", oslo.id, by="Ada")
            assert conversation.state.pending == (rome,)
            await conversation.approve([rome.id])
            assert (await conversation.run()).text == "done"
            (rejected,) = events_of(conversation, UserRejectObservation)
            assert (rejected.cause, rejected.reason) == (oslo.id, "too far")
        assert done == ["Rome"]
        assert "too far" in read[1]

    async def test_a_decision_about_what_does_not_wait_is_refused(self, place: ConversationPlace) -> None:
        done: list[str] = []
        script = [call("change", name="Rome"), say("done")]
        async with opened(place, script, changing(done), confirm=AlwaysConfirm()) as conversation:
            await raised(NothingPending, conversation.approve())
            await raised(NothingPending, conversation.reject("no"))
            (action,) = (await conversation.run("go")).pending
            assert "act_nowhere" in str(await raised(NothingPending, conversation.approve("act_nowhere")))
            await raised(ValueError, conversation.approve(["one", "two"], {"name": "Oslo"}))
            await raised(NothingPending, conversation.answer(action.id, "yes"))
            await conversation.reject("no")
            await raised(NothingPending, conversation.approve(action.id))
        assert done == []

    async def test_a_policy_can_be_set_and_counts_from_the_next_reply(self, place: ConversationPlace) -> None:
        done: list[str] = []
        script = [call("change", name="Rome"), call("change", name="Oslo"), say("done")]
        async with opened(place, script, changing(done), confirm=AlwaysConfirm()) as conversation:
            assert (await conversation.run("go")).status is WAITING
            await conversation.set_policy(NeverConfirm())
            await conversation.approve()
            assert (await conversation.run()).text == "done"
        assert done == ["Rome", "Oslo"]

    async def test_a_callback_decides_on_each_action(self, place: ConversationPlace) -> None:
        done: list[str] = []
        asked: list[tuple[str, JsonValue]] = []

        async def confirm(action: RatedAction) -> bool | Approve | Reject:
            await checkpoint()
            asked.append((action.tool_name, action.arguments["name"]))
            match action.arguments["name"]:
                case "Rome":
                    return True
                case "Oslo":
                    return Approve({"name": "Bergen"}, by="Ada")
                case _:
                    return Reject("too far")

        names = ["Rome", "Oslo", "Perth"]
        script = [calls(*(call("change", name=name) for name in names)), say("done")]
        async with opened(place, script, changing(done), confirm=confirm) as conversation:
            result = await conversation.run("go")
            assert (result.status, result.text) == (FINISHED, "done")
            (rejected,) = events_of(conversation, UserRejectObservation)
            assert rejected.reason == "too far"
        assert asked == [("change", name) for name in names]
        assert sorted(done) == ["Bergen", "Rome"]

    async def test_a_callback_need_not_be_async(self, place: ConversationPlace) -> None:
        done: list[str] = []

        def refuse(action: RatedAction) -> bool:
            return action.tool_name != "change"

        script = [call("change", name="Rome"), say("done")]
        async with opened(place, script, changing(done), confirm=refuse) as conversation:
            assert (await conversation.run("go")).text == "done"
            assert events_of(conversation, UserRejectObservation)
        assert done == []

    async def test_a_decision_from_elsewhere_ends_the_question_to_the_callback(self, place: ConversationPlace) -> None:
        done: list[str] = []
        asked, withdrawn = anyio.Event(), anyio.Event()

        async def confirm(action: RatedAction) -> bool:
            del action
            asked.set()
            try:
                await anyio.sleep_forever()
            finally:
                withdrawn.set()
            return False

        script = [call("change", name="Rome"), say("done")]
        async with opened(place, script, changing(done), confirm=confirm) as conversation:
            async with running(conversation) as begun:
                await asked.wait()
                (action,) = conversation.state.pending
                await conversation.approve(action.id, by="Bob")
                await withdrawn.wait()
            assert begun.result.text == "done"
        assert done == ["Rome"]

    async def test_a_question_waits_for_an_answer_that_fits(self, place: ConversationPlace) -> None:
        async with opened(place, [_ASK_PORT, say("thanks")], ask_user) as conversation:
            result = await conversation.run("go")
            (question,) = result.questions
            assert (result.status, question.text, question.live) == (WAITING, "Which port?", False)
            assert conversation.state.questions == (question,)
            await raised(AnswerRefused, conversation.answer(question.id, "eighty"))
            assert conversation.state.questions == (question,)
            await conversation.answer(result.pending[0].id, 80, by="Ada")
            assert (await conversation.run()).text == "thanks"
            (answered,) = events_of(conversation, QuestionAnswered)
            assert (answered.outcome, answered.answer) == ("answered", 80)

    async def test_a_question_can_be_declined(self, place: ConversationPlace) -> None:
        async with opened(place, [_ASK, say("then not")], ask_user) as conversation:
            (question,) = (await conversation.run("go")).questions
            await conversation.decline(question.id, "busy")
            assert (await conversation.run()).text == "then not"
            (ended,) = events_of(conversation, QuestionAnswered)
            assert (ended.outcome, ended.reason) == ("declined", "busy")
            await raised(NothingPending, conversation.decline(question.id))

    async def test_a_callback_answers_questions_one_after_another(self, place: ConversationPlace) -> None:
        asked: list[str] = []

        async def answer(question: QuestionAsked) -> JsonValue | Answered | Declined:
            await checkpoint()
            asked.append(question.text)
            return Answered(80, by="Ada") if question.answer_schema else Declined("busy")

        async with opened(place, [_ASK_PORT, _ASK, say("thanks")], ask_user, on_question=answer) as conversation:
            assert (await conversation.run("go")).text == "thanks"
            ended = events_of(conversation, QuestionAnswered)
            assert [(each.outcome, each.answer, each.reason) for each in ended] == [
                ("answered", 80, None),
                ("declined", None, "busy"),
            ]
        assert asked == ["Which port?", "Which host?"]

    async def test_an_action_waits_for_a_person_after_the_conversation_was_closed(
        self, place: ConversationPlace
    ) -> None:
        done: list[str] = []
        script = [call("change", name="Rome")]
        async with opened(place, script, changing(done), confirm=AlwaysConfirm(), id="waits") as conversation:
            pending = (await conversation.run("go")).pending
        async with opened(place, [say("done")], changing(done), id="waits") as conversation:
            assert conversation.state.pending == pending
            await conversation.approve()
            await until(conversation, lambda: not conversation.state.open_actions)
            assert (await conversation.run()).text == "done"
            assert actions_of(conversation)[0].id == pending[0].id
        assert done == ["Rome"]
