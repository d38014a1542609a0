"""A repaired call runs as it was meant, and its provider is shown what its model wrote: its cache holds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from pydantic import JsonValue

from agentcore import ActionEvent, AlwaysConfirm, MemoryStore
from agentcore.context import build_messages
from agentcore.events import WrittenCall
from agentcore.messages import ToolCallBlock, ToolResultBlock
from agentcore.record import read_log
from agentcore.testing import Request, ScriptedLLM, call, calls, say
from agentcore.tools import tool
from talks import events_of, ran, talk


@tool(resources=(), aliases=("lookup", "look up!", "x" * 65), ignored=("why",))
async def find(file_path: str, line: int = 0, exact: bool = False) -> str:
    """Find something."""
    ran.append((file_path, line, exact))
    return f"found {file_path}"


def shown_in(request: Request) -> list[tuple[str, Any, str]]:
    """Return name and arguments of each call that a request shows, and the name that its answer has."""
    blocks = [block for message in request.messages for block in message.content]
    answers = {block.call_id: block.name for block in blocks if isinstance(block, ToolResultBlock)}
    return [(each.name, each.arguments, answers[each.id]) for each in blocks if isinstance(each, ToolCallBlock)]


PLAIN: dict[str, JsonValue] = {"file_path": "a", "line": 3}


@pytest.mark.parametrize(
    ("name", "given", "arguments", "written"),
    [
        ("find", PLAIN, PLAIN, None),
        ("lookup", PLAIN, PLAIN, WrittenCall(name="lookup")),
        ("Find", PLAIN, PLAIN, WrittenCall(name="Find")),
        ("find", {"filePath": "a", "line": 3}, PLAIN, WrittenCall(arguments={"filePath": "a", "line": 3})),
        ("find", {"file_path": "a", "line": "3"}, PLAIN, WrittenCall(arguments={"file_path": "a", "line": "3"})),
        ("find", {**PLAIN, "why": "so"}, PLAIN, WrittenCall(arguments={**PLAIN, "why": "so"})),
        ("find", {**PLAIN, "exact": None}, PLAIN, WrittenCall(arguments={**PLAIN, "exact": None})),
        ("lookup", {"path": 1}, {"path": 1}, WrittenCall(name="lookup")),
        ("find", '{"file_path": "a", "line": "3"} And so on.', PLAIN, WrittenCall(arguments={"file_path": "a", "line": "3"})),
        ("nowhere", PLAIN, PLAIN, None),
    ],
)  # fmt: skip
async def test_what_was_repaired_stands_beside_the_call_and_is_what_the_model_is_shown(
    name: str, given: Any, arguments: dict[str, JsonValue], written: WrittenCall | None
) -> None:
    llm = ScriptedLLM([scripted_call(name, given), say("done")])
    async with talk(llm, find) as conversation:
        await conversation.run("go")
        (action,) = events_of(conversation, ActionEvent)
        assert (action.arguments, action.written) == (arguments, written)
    words = (written and written.arguments) or arguments
    assert shown_in(llm.requests[1]) == [(name, words, name)]
    assert list(shown_in(llm.requests[1])[0][1]) == list(words), "in the order of the model"


def scripted_call(name: str, arguments: Any) -> Any:
    made = call(name)
    (block,) = made.content
    assert isinstance(block, ToolCallBlock)
    return type(made)(content=(block.model_copy(update={"arguments": arguments}),))


@pytest.mark.parametrize(("name", "shown"), [("look up!", "find"), ("x" * 65, "find"), ("lookup(", "find")])
async def test_a_name_that_no_provider_takes_back_is_shown_as_the_tools(name: str, shown: str) -> None:
    llm = ScriptedLLM([call(name, filePath="a"), say("done")])
    async with talk(llm, find) as conversation:
        await conversation.run("go")
        (action,) = events_of(conversation, ActionEvent)
        assert action.written == WrittenCall(name=name, arguments={"filePath": "a"})
    assert shown_in(llm.requests[1]) == [(shown, {"filePath": "a"}, shown)]
    assert ran == [("a", 0, False)]


async def test_what_cannot_be_read_stays_as_it_is() -> None:
    llm = ScriptedLLM([scripted_call("lookup", '{"file_path": "a'), say("done")])
    async with talk(llm, find) as conversation:
        await conversation.run("go")
        (action,) = events_of(conversation, ActionEvent)
        assert (action.written, action.malformed) == (None, '{"file_path": "a')
    assert shown_in(llm.requests[1]) == [("find", {}, "find")]


async def test_each_request_begins_with_the_one_before_and_the_reply_in_its_own_words() -> None:
    store = MemoryStore()
    lines = [
        call("lookup", filePath="a", line="1"),
        calls(call("find", filePath="b", why="so"), call("Find", file_path="c")),
        say("done"),
    ]
    llm = ScriptedLLM(lines)
    async with talk(llm, find, store=store, id="a") as conversation:
        await conversation.run("go")
    replies = [reply.content for reply in lines]
    for (before, after), reply in zip(pairwise(llm.requests), replies, strict=False):
        count = len(before.messages)
        assert list(after.messages[:count]) == list(before.messages)
        again = after.messages[count].content
        assert [(b.name, b.arguments) for b in again if isinstance(b, ToolCallBlock)] == [
            (b.name, b.arguments) for b in reply if isinstance(b, ToolCallBlock)
        ]
    assert list(build_messages(await read_log(store, "a")))[:-1] == list(llm.requests[-1].messages)
    assert sorted(ran) == [("a", 1, False), ("b", 0, False), ("c", 0, False)]


async def test_secrets_are_masked_in_both_and_a_mask_that_the_model_typed_stays_a_word() -> None:
    store = MemoryStore()
    value = "hunter2-hunter2"
    given: dict[str, JsonValue] = {"filePath": f"{value} and <secret:PASSWORD>", "why": value}
    llm = ScriptedLLM([call("lookup", **given), say("done")])
    options: dict[str, Any] = {"store": store, "id": "a", "secrets": {"PASSWORD": value}, "confirm": AlwaysConfirm()}
    async with talk(llm, find, **options) as conversation:
        await conversation.run("go")
        (action,) = events_of(conversation, ActionEvent)
        assert value not in action.model_dump_json()
        assert action.written is not None
        assert action.written.arguments is not None
        assert action.written.arguments["filePath"] == action.arguments["file_path"]
        assert "<secret:PASSWORD:encoded> and <secret:PASSWORD>" in action.model_dump_json()
    async with talk([say("done")], find, **options) as conversation:
        await conversation.reject("no")
        await conversation.run()
        assert value not in str(list(build_messages(conversation.state)))
    assert not ran
