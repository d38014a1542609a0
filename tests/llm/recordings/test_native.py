"""What providers really answered, through the native route."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.llm import Reply
from recorded_judgement import Answer, ask, different, spoken
from recorded_traffic import HOW_TO_GET, Recording, Wire, load, recordings_file, serve_recordings, streamed

RECORDINGS = [recording for recording in load(recordings_file()) if spoken(recording, "native")]

pytestmark = pytest.mark.skipif(not RECORDINGS, reason=HOW_TO_GET)


def of(wire: Wire) -> list[Recording]:
    return [recording for recording in RECORDINGS if recording.wire == wire]


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic", "gemini"])
async def test_everything_in_a_recorded_answer_arrives(wire: Wire) -> None:
    wrong: dict[str, Any] = {}
    async with serve_recordings(of(wire)) as server:
        for recording in of(wire):
            if found := different(await ask(server, recording, "native"), recording):
                wrong[recording.name] = found
    assert wrong == {}


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic", "gemini"])
async def test_a_stream_in_pieces_of_one_byte_says_the_same(wire: Wire) -> None:
    cut = [recording for recording in of(wire) if recording.streamed]
    wrong: dict[str, Any] = {}
    async with serve_recordings(cut, piece=1) as server:
        for recording in cut:
            if found := different(await ask(server, recording, "native"), recording):
                wrong[recording.name] = found
    assert wrong == {}


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic", "gemini"])
async def test_an_answer_that_comes_at_once_though_a_stream_was_asked_for_is_the_same(wire: Wire) -> None:
    whole = [recording for recording in of(wire) if not recording.streamed and recording.status == 200]
    wrong: dict[str, Any] = {}
    async with serve_recordings(whole) as server:
        for recording in whole:
            asked = await ask(server, recording, "native")
            if isinstance(asked, Reply):
                told: Answer = await streamed(server.model(recording, "native"))
                if found := different(told, recording):
                    wrong[recording.name] = found
    assert wrong == {}


async def test_a_reply_of_a_recording_is_the_same_after_it_was_written_down() -> None:
    async with serve_recordings(RECORDINGS) as server:
        for recording in RECORDINGS:
            answer = await ask(server, recording, "native")
            if isinstance(answer, Reply):
                assert Reply.model_validate_json(answer.model_dump_json()) == answer
