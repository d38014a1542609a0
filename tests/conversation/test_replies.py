"""Replies that are not as they should be, and code of the program's that fails on them: what was paid for is kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

import pytest
from pydantic import JsonValue

from agentcore import ActionAssessed, ActionEvent, Message, ObservationEvent
from agentcore.context import build_messages
from agentcore.messages import ToolCallBlock, ToolResultBlock
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import tool
from agentcore.usage import Usage
from talks import FINISHED, WAITING, error_of, events_of, talk

PAID = Usage(input_tokens=100, output_tokens=20, requests=1, known_cost=Decimal("0.5"))


@tool(resources=())
async def echo(text: str) -> str:
    """Say it again."""
    return text


def ids_sent(messages: Sequence[Message]) -> tuple[list[str], list[str]]:
    blocks = [block for message in messages for block in message.content]
    return (
        [block.id for block in blocks if isinstance(block, ToolCallBlock)],
        [block.call_id for block in blocks if isinstance(block, ToolResultBlock)],
    )


async def test_calls_of_one_reply_with_one_id_reach_the_model_with_ids_of_their_own() -> None:
    given = ["a", "a", "b", "a"]
    blocks = tuple(
        ToolCallBlock(id=each, name="echo", arguments={"text": str(number)}) for number, each in enumerate(given)
    )
    llm = ScriptedLLM([Message(role="assistant", content=blocks), say("done")])
    async with talk(llm, echo) as conversation:
        await conversation.run("go")
        actions = events_of(conversation, ActionEvent)
        called, answered = ids_sent(llm.requests[1].messages)
        assert called == answered == [action.call_id for action in actions]
        assert len(set(called)) == len(given)
        assert [action.given_call_id for action in actions] == [None, "a", None, "a"]
        assert all(action.call_id.startswith(action.id) for action in actions if action.given_call_id is not None)
        assert ids_sent(build_messages(conversation.state))[0] == called


@pytest.mark.parametrize("levels", [101, 900, 100_000])
@pytest.mark.parametrize("name", ["pack", "unknown"])
async def test_arguments_that_are_nested_too_deeply_are_answered_with_what_is_wrong_and_kept(
    levels: int, name: str
) -> None:
    @tool
    async def pack(things: list[Any]) -> str:
        """Pack."""
        return "packed"

    given = '{"things": ' + "[" * levels + "]" * levels + "}"
    deep = ToolCallBlock(id="a", name=name, arguments=given)
    async with talk([calls(deep, call("pack", things=[[1]]), usage=PAID), say("done")], pack) as conversation:
        result = await conversation.run("go")
        assert (result.text, result.usage.known_cost) == ("done", PAID.known_cost)
        actions = events_of(conversation, ActionEvent)
        assert actions[0].malformed == given
        answer = error_of(conversation)
        assert answer.cause == actions[0].id
        assert ("nested too deeply" in answer.error) == (name == "pack")
        assert len(answer.error) < 4_000
        assert any(event.kind == "observation" and event.cause == actions[1].id for event in conversation.state.events)


async def test_an_object_that_is_nested_too_deeply_is_kept_as_the_text_it_came_as() -> None:
    things: JsonValue = []
    for _ in range(200):
        things = [things]
    async with talk([call("echo", text=things), say("done")], echo) as conversation:
        assert (await conversation.run("go")).text == "done"
        (action,) = events_of(conversation, ActionEvent)
        assert json.loads(action.malformed or "") == {"text": things}


async def test_a_reply_is_paid_for_and_done_though_the_tool_can_not_say_how_risky_it_is() -> None:
    def fail(*_: object) -> NoReturn:
        raise RuntimeError("no idea")

    @tool(risk=fail, resources=fail)
    async def odd() -> str:
        """Odd."""
        return "did it"

    async with talk([calls(call("odd"), usage=PAID), say("done")], odd) as conversation:
        result = await conversation.run("go")
        assert (result.status, result.text) == (FINISHED, "done")
        assert result.usage.known_cost == PAID.known_cost
        assert not events_of(conversation, ActionAssessed)


async def test_what_a_policy_can_not_decide_on_a_person_decides() -> None:
    class Odd:
        def needs_confirmation(self, action: ActionEvent) -> bool:
            raise RuntimeError("no idea")

    async with talk([calls(call("echo", text="hello"), usage=PAID), say("done")], echo, confirm=Odd()) as conversation:
        result = await conversation.run("go")
        assert result.status is WAITING
        assert [action.tool_name for action in result.pending] == ["echo"]
        assert result.usage.known_cost == PAID.known_cost
        await conversation.approve()
        assert (await conversation.run()).text == "done"


async def test_an_answer_says_which_arguments_had_no_effect() -> None:
    @tool(ignored=("description", "security_risk"))
    async def look(path: str) -> str:
        """Look at a file."""
        return f"looked at {path}"

    given = {"path": "a", "description": "look", "security_risk": "LOW"}
    async with talk([call("look", **given), call("look", path="b"), say("done")], look) as conversation:
        await conversation.run("go")
        first, second = events_of(conversation, ActionEvent)
        assert (first.arguments, first.ignored) == ({"path": "a"}, ("description", "security_risk"))
        assert second.ignored == ()
        texts = [answer.text for answer in events_of(conversation, ObservationEvent)]
        assert "[Ignored: `description`, `security_risk`; no effect here.]" in texts[0]
        assert texts[1] == "looked at b"
