"""Recordings that follow each other: what a conversation sends next has what the model said, as the provider wants it back.

The earlier exchange goes through a conversation and its log; another process, so to say, goes on from the log alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import Agent, Conversation, FileStore, Limits
from recorded_traffic import HOW_TO_GET, Recording, load, recordings_file, serve_recordings

Json = dict[str, Any]

_IDS = {"id", "call_id", "signature", "encrypted_content", "thoughtSignature"}


def ids(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            # The id of an item is not that of the call in it, though an old client sent it back as such.
            if name in _IDS and isinstance(item, str) and not item.startswith("fc_"):
                yield item
            else:
                yield from ids(item)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from ids(item)


def said_ids(recording: Recording) -> set[str]:
    if recording.sse is None:
        return {found for found in ids(recording.response) if len(found) > 7}
    events = [line[5:] for line in recording.sse.splitlines() if line.startswith("data:") and "[DONE]" not in line]
    return {found for event in events for found in ids(json.loads(event)) if len(found) > 7}


def follow_ups(recordings: list[Recording]) -> Iterator[tuple[Recording, Recording]]:
    by_place = {(recording.test, recording.number): recording for recording in recordings}
    for earlier in recordings:
        later = by_place.get((earlier.test, earlier.number + 1))
        if later is None or later.wire != earlier.wire:
            continue
        sent = json.dumps(later.request)
        if any(found in sent for found in said_ids(earlier)):
            yield earlier, later


PAIRS = list(follow_ups(load(recordings_file())))

pytestmark = pytest.mark.skipif(not PAIRS, reason=HOW_TO_GET)


def assistant(recording: Recording, request: Json, earlier: Recording) -> list[Any]:
    """What the model said in a request, as far as it said it in the earlier answer, in a form that can be compared."""
    known = said_ids(earlier)
    if recording.wire == "responses":
        items = [_item(item) for item in request["input"] if _by_the_model(item)]
        return [item for item in items if item != {"said": ""}]
    if recording.wire == "gemini":
        contents = [content for content in request["contents"] if content["role"] == "model"]
        return [_part(part) for content in contents if not known.isdisjoint(ids(content)) for part in content["parts"]]
    turns = [turn for turn in request["messages"] if turn["role"] == "assistant" and not known.isdisjoint(ids(turn))]
    assert len(turns) == 1
    return _chat(turns[0]) if recording.wire == "chat" else _blocks(turns[0])


def _part(part: Json) -> Json:
    # A call that came without an id is given one by whoever reads it.
    call = part.get("functionCall")
    return part if call is None else {**part, "functionCall": {**call, "id": None}}


def _by_the_model(item: Json) -> bool:
    return item.get("role") == "assistant" or item.get("type") not in {None, "message", "function_call_output"}


def _item(item: Json) -> Json:
    if item.get("role") == "assistant":
        content = item["content"]
        return {"said": content if isinstance(content, str) else "".join(part["text"] for part in content)}
    # Nothing is stored at the provider, so its ids of calls mean nothing; those of reasoning and tools go with them.
    left_out = {"id", "status"} if item["type"] == "function_call" else set[str]()
    shown = {name: value for name, value in item.items() if name not in left_out and value is not None}
    return shown | {"arguments": json.loads(item["arguments"])} if "arguments" in item else shown


def _chat(turn: Json) -> list[Any]:
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in turn.get("tool_calls") or ()
    ]
    return [turn.get("content") or "", turn.get("reasoning_content") or "", *calls]


def _blocks(turn: Json) -> list[Any]:
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in turn["content"]]


@pytest.mark.parametrize(("earlier", "later"), PAIRS, ids=[later.name for _, later in PAIRS])
async def test_the_next_request_says_what_the_model_said_as_it_was_really_sent_back(
    earlier: Recording, later: Recording, tmp_path: Path
) -> None:
    one_step = Limits(steps=1)
    with anyio.fail_after(60):
        async with serve_recordings([earlier]) as server:
            agent = Agent(llm=server.model(earlier, "native"))
            async with Conversation(agent, tmp_path, store=FileStore(tmp_path / "log"), limits=one_step) as first:
                await _ran(first, "Hello?")
            async with Conversation(
                agent, tmp_path, store=FileStore(tmp_path / "log"), id=first.id, limits=one_step
            ) as second:
                await _ran(second, "And then?")
            sent = [request.json() for request in server.asked]
    assert len(sent) == 2
    assert assistant(earlier, sent[1], earlier) == assistant(later, later.request, earlier)


async def _ran(conversation: Conversation, text: str) -> None:
    result = await conversation.run(text)
    assert result.steps == 1
