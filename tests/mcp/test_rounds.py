"""Calls that a server answers with questions: asked at rest, and the call made again with the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agentcore.errors import ToolError
from agentcore.tools import InputRequired, Resumption
from mcp_opened import Opened, opened, program

FORM: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Which city?",
        "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
LINK: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Sign in.", "url": "https://example.com/in"},
}


def asks(**fields: Any) -> dict[str, Any]:
    return {"resultType": "input_required", **fields}


async def ask(it: Opened, result: dict[str, Any], *answers: JsonValue) -> tuple[list[str], Any]:
    """Call a tool that asks, and answer; return what was asked, and what the server was sent at last."""
    asked: list[str] = []
    try:
        return asked, json.loads(await it.text("result", result=result))
    except InputRequired as required:
        question = required
    for answer in answers:
        asked.append(question.question.text)
        # As a log has it.
        resumption = Resumption(note=json.loads(json.dumps(question.note)), answer=answer)
        if answer is None:
            resumption = Resumption(note=question.note, declined="no time")
        try:
            return asked, json.loads(await it.resumed("result", resumption, result=result))
        except InputRequired as required:
            question = required
    raise AssertionError("it asks for more")


async def test_a_secret_of_the_server_is_in_no_question_that_is_kept(tmp_path: Path) -> None:
    async with opened(program("raw", "--modern", env={"API_KEY": "hush-written-there"}), tmp_path) as it:
        form = {**FORM, "params": {**FORM["params"], "message": "Is it hush-written-there?"}}
        with pytest.raises(InputRequired) as raised:
            await it.text("result", result=asks(inputRequests={"a": form}))
        assert raised.value.question.text == "The MCP server 'raw' asks: Is it <secret:API_KEY>?"
        assert "hush" not in str(raised.value.note)


async def test_questions_are_asked_one_after_another_and_the_call_is_made_again_with_the_answers(
    tmp_path: Path,
) -> None:
    async with opened(program("raw", "--modern"), tmp_path) as it:
        result = asks(
            inputRequests={"a": FORM, "b": LINK, "c": FORM, "d": {"method": "roots/list"}}, requestState="opaque"
        )
        asked, sent = await ask(it, result, {"city": "Rome"}, "done", None)
    assert asked[0] == asked[2] == "The MCP server 'raw' asks: Which city?"
    assert "https://example.com/in" in asked[1]
    assert sent["requestState"] == "opaque"
    assert sent["inputResponses"] == {
        "a": {"action": "accept", "content": {"city": "Rome"}},
        "b": {"action": "accept"},
        "c": {"action": "decline"},
        "d": {"roots": [{"uri": f"file://{tmp_path}", "name": "workspace"}]},
    }


async def test_a_call_without_a_question_is_made_again_at_once(tmp_path: Path) -> None:
    async with opened(program("raw", "--modern"), tmp_path) as it:
        assert await ask(it, asks(requestState="opaque")) == ([], {"inputResponses": None, "requestState": "opaque"})


async def test_the_model_is_not_lent(tmp_path: Path) -> None:
    sampling = {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 10},
    }
    async with opened(program("raw", "--modern"), tmp_path) as it:
        with pytest.raises(ToolError, match="wants to use the model"):
            await ask(it, asks(inputRequests={"a": sampling}))


async def test_what_is_no_question_is_an_error(tmp_path: Path) -> None:
    form = {
        **FORM,
        "params": {
            **FORM["params"],
            "requestedSchema": {"type": "object", "properties": {"a": {"type": "string", "minLength": -1}}},
        },
    }
    async with opened(program("raw", "--modern"), tmp_path) as it:
        with pytest.raises(ToolError, match="asks what can't be asked"):
            await ask(it, asks(inputRequests={"a": form}))
