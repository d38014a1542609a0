"""What a server asks while a call runs: questions to a person, the folder where it may work, and what is not given to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import JsonValue

from agentcore.errors import QuestionDeclined
from mcp_opened import Opened, opened, program

FORM: dict[str, Any] = {
    "message": "Which city?",
    "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Asked:
    """A person who answers what he is asked."""

    def __init__(self, it: Opened, answer: Any = None) -> None:
        self.questions: list[tuple[str, Mapping[str, JsonValue] | None, Sequence[str]]] = []
        self.answer: Any = answer
        host: Any = it.host
        host.question = self.question

    async def question(self, text: str, schema: Mapping[str, JsonValue] | None, options: Sequence[str]) -> JsonValue:
        self.questions.append((text, schema, options))
        if self.answer == "wait":
            await anyio.sleep_forever()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def ask(it: Opened, params: Any = FORM, method: str = "elicitation/create") -> Any:
    """Have the server ask; return what it was answered."""
    return json.loads(await it.text("request", method=method, params=params))


async def test_a_form_is_asked_of_a_person_and_the_answer_is_the_servers(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        person = Asked(it, {"city": "Rome"})
        assert await ask(it) == {"action": "accept", "content": {"city": "Rome"}}
        assert person.questions == [("The MCP server 'raw' asks: Which city?", FORM["requestedSchema"], ())]


async def test_a_secret_of_the_server_is_masked_in_its_question(tmp_path: Path) -> None:
    async with opened(program("raw", env={"API_KEY": "hush-written-there"}), tmp_path) as it:
        person = Asked(it, {"city": "Rome"})
        schema = {"properties": {"city": {"type": "string", "description": "Not hush-written-there."}}}
        await ask(it, {"message": "Is it hush-written-there?", "requestedSchema": {"type": "object", **schema}})
        ((text, asked, _),) = person.questions
        assert text == "The MCP server 'raw' asks: Is it <secret:API_KEY>?"
        assert "Not <secret:API_KEY>." in str(asked)


async def test_a_url_is_named_and_the_person_says_when_it_is_done(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        person = Asked(it, "done")
        url = {"mode": "url", "message": "Sign in.", "url": "https://example.com/in", "elicitationId": "1"}
        assert await ask(it, url) == {"action": "accept"}
        ((text, _, options),) = person.questions
        assert "'https://example.com/in'" in text
        assert options == ("done", "decline")
        person.answer = "decline"
        assert await ask(it, url) == {"action": "decline"}


@pytest.mark.parametrize("error", [QuestionDeclined("Nobody is here."), RuntimeError("The callback failed.")])
async def test_what_nobody_answers_is_declined(tmp_path: Path, error: Exception) -> None:
    async with opened(program("raw"), tmp_path) as it:
        Asked(it, error)
        assert await ask(it) == {"action": "decline"}


async def test_what_is_no_question_is_an_error_for_the_server(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        Asked(it, ValueError("The text of the question is empty."))
        assert (await ask(it))["code"] == -32602


async def test_a_question_does_not_outlive_its_call(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        person = Asked(it, "wait")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, it)
            while not person.questions:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        person.answer = {"city": "Oslo"}
        assert (await ask(it))["action"] == "accept"


async def test_the_time_in_which_a_person_is_asked_is_not_the_calls(tmp_path: Path) -> None:
    async with opened(program("raw", call_seconds=1), tmp_path) as it:
        release = anyio.Event()

        class Slow(Asked):
            async def question(self, text: str, schema: Any, options: Any) -> JsonValue:
                await super().question(text, schema, options)
                await release.wait()
                return {"city": "Bern"}

        person = Slow(it)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, it)
            while not person.questions:
                await anyio.lowlevel.checkpoint()
            begun = anyio.current_time()
            while anyio.current_time() < begun + 1.2:
                await anyio.lowlevel.checkpoint()
            release.set()


async def test_the_root_is_the_workspaces_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    async with opened(program("raw"), folder) as it:
        roots = json.loads(await it.text("request", method="roots/list"))["roots"]
        assert roots == [{"uri": f"file://{tmp_path}/a%20folder", "name": "workspace"}]


async def test_a_server_does_not_get_to_use_the_model(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        params = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 10}
        assert "not supported" in (await ask(it, params, "sampling/createMessage"))["message"]


async def test_resources_are_listed_and_read_by_one_tool(tmp_path: Path) -> None:
    async with opened(program("raw"), tmp_path) as it:
        text = await it.text("read_resource")
        assert text == "note://one (one): The first note.\nnote://two (two)\nnote://{name} (note)"
        text = await it.text("read_resource", uri="note://one")
        assert text.startswith(
            "[Resource note://one:]\nThe words of note://one.\n[A resource note://one of type 'audio/wav', 4 bytes"
        )
        kept = Path(text.rpartition("in the file ")[2].removesuffix("]"))
        assert kept.read_bytes() == b"\0\1\2\3"
