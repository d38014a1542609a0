"""Every cell of the status table, by doing it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from agentcore import AlwaysConfirm, Conversation, ConversationStatus, Limits, QuestionAsked, ask_user
from agentcore.errors import NothingPending, RunError
from agentcore.testing import call, say
from talks import ERROR, FINISHED, IDLE, PAUSED, STUCK, WAITING, ping, talk

Do = Callable[[Conversation], Awaitable[object]]

DEEDS: dict[str, Do] = {
    "send": lambda conversation: conversation.send("more"),
    "run": lambda conversation: conversation.run(),
    "pause": lambda conversation: conversation.pause(),
    "interrupt": lambda conversation: conversation.interrupt(),
    "reject": lambda conversation: conversation.reject("no"),
}

DECISIONS: tuple[Do, ...] = (
    lambda conversation: conversation.approve(),
    lambda conversation: conversation.reject("no"),
    lambda conversation: conversation.answer("ev_1", "yes"),
    lambda conversation: conversation.decline("ev_1"),
)


def _go(conversation: Conversation) -> Awaitable[object]:
    return conversation.run("go")


async def _pause(conversation: Conversation) -> None:
    await conversation.send("go")
    await conversation.pause()


# How each status is reached: the model's script, the options, and what is done.
WAYS: dict[ConversationStatus, tuple[list[Any], dict[str, Any], Do]] = {
    IDLE: ([say("x")], {}, lambda conversation: conversation.send("go")),
    PAUSED: ([say("x")], {}, _pause),
    WAITING: ([call("ping"), say("x")], {"confirm": AlwaysConfirm()}, _go),
    FINISHED: ([say("x"), say("y")], {}, _go),
    STUCK: ([say(""), say(""), say("x")], {}, _go),
    ERROR: ([call("ping"), say("x")], {"limits": Limits(steps=1)}, _go),
}

TABLE: dict[ConversationStatus, dict[str, ConversationStatus]] = {
    IDLE: {"send": IDLE, "run": FINISHED, "pause": PAUSED, "interrupt": IDLE},
    PAUSED: {"send": PAUSED, "run": FINISHED, "pause": PAUSED, "interrupt": PAUSED},
    WAITING: {"send": WAITING, "run": WAITING, "pause": WAITING, "interrupt": PAUSED, "reject": IDLE},
    FINISHED: {"send": IDLE, "run": FINISHED, "pause": FINISHED, "interrupt": FINISHED},
    STUCK: {"send": IDLE, "run": FINISHED, "pause": STUCK, "interrupt": STUCK},
    ERROR: {"send": IDLE, "run": FINISHED, "pause": ERROR, "interrupt": ERROR},
}


@pytest.mark.parametrize("status", TABLE)
async def test_each_command_leads_where_the_table_says(status: ConversationStatus) -> None:
    replies, options, reach = WAYS[status]
    for deed, expected in TABLE[status].items():
        async with talk(replies, ping, **options) as conversation:
            await reach(conversation)
            assert conversation.state.status is status
            head = conversation.state.head
            if status is not WAITING:
                for decide in DECISIONS:
                    with pytest.raises(NothingPending):
                        await decide(conversation)
            await DEEDS[deed](conversation)
            assert (deed, conversation.state.status) == (deed, expected)
            if deed == "interrupt" and status is expected:
                assert conversation.state.head == head


def _broken(question: QuestionAsked) -> str:
    raise OSError("the terminal is gone")


@pytest.mark.parametrize(("status", "after_decline"), [(WAITING, IDLE), (PAUSED, PAUSED), (ERROR, ERROR)])
@pytest.mark.parametrize("declined", [False, True])
async def test_a_question_is_ended_wherever_it_waits(
    status: ConversationStatus, after_decline: ConversationStatus, declined: bool
) -> None:
    script = [call("ask_user", text="Which port?"), say("x")]
    async with talk(script, ask_user, on_question=_broken if status is ERROR else None) as conversation:
        with suppress(RunError):
            await conversation.run("go")
        if status is PAUSED:
            await conversation.interrupt()
        assert conversation.state.status is status
        (question,) = conversation.state.questions
        if declined:
            await conversation.decline(question.id)
            assert conversation.state.status is after_decline
        else:
            await conversation.answer(question.id, "8080")
        assert (await conversation.run()).status is FINISHED
        for decide in DECISIONS:
            with pytest.raises(NothingPending):
                await decide(conversation)
