"""Recorded traffic of providers: read from a file, served by a local server, asked by any route.

The file is not a part of the project. It has one request and its answer per line, as JSON: name, wire (chat, responses,
anthropic or gemini), path, status, request, response (JSON, or null where it was streamed), and sse (the event stream).
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentcore.llm import LLM, Reply
from agentcore.messages import Message
from agentcore.testing.http import HTTPRequest, Responder, serve_http

__all__ = [
    "HOW_TO_GET",
    "VARIABLE",
    "Recording",
    "Route",
    "Server",
    "Wire",
    "load",
    "recordings_file",
    "serve_recordings",
    "streamed",
]

VARIABLE = "AGENTCORE_RECORDINGS"
HOW_TO_GET = (
    f"no recordings: set {VARIABLE} to a file of them, one JSON object per line with name, wire, path, status, request, "
    "response and sse; pydantic-ai's test cassettes hold such traffic (nox -s recordings -- FILE)"
)

KEY = "sk-of-the-test"
ASK = [Message.user("Hello?")]

Wire = Literal["chat", "responses", "anthropic", "gemini"]
Route = Literal["native", "litellm"]

_PROVIDERS = {"google": "gemini", "openai_responses": "openai", "deepseek_responses": "deepseek"}
_MIXED = "tool_choice_matrix"
"""Recordings of several providers: which one, the name's middle says."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One request and its answer."""

    name: str
    wire: Wire
    path: str
    status: int
    request: dict[str, Any]
    response: Any
    sse: str | None

    @property
    def provider(self) -> str:
        """The provider, by the name that a model's name begins with."""
        if self.wire in {"anthropic", "gemini"}:
            return self.wire
        if "cerebras" in self.name:
            return "cerebras"
        maker, _, rest = self.name.partition("__")
        if maker == _MIXED:
            maker = rest.removesuffix("-").rpartition("__")[0].removesuffix("-").rpartition("-")[2]
        found = _PROVIDERS.get(maker, maker)
        return "openai" if self.wire == "responses" and found != "deepseek" else found

    @property
    def model(self) -> str:
        """The provider and the model."""
        name = self.path.rpartition("/")[2].partition(":")[0] if self.wire == "gemini" else self.request["model"]
        return f"{self.provider}/{name}"

    @property
    def streamed(self) -> bool:
        """Whether the answer came as a stream."""
        return self.sse is not None

    @property
    def number(self) -> int:
        """Which exchange of its test it is."""
        return int(self.name.rpartition("__")[2])

    @property
    def test(self) -> str:
        """What those that follow each other have in common."""
        return self.name.rpartition("__")[0]


def recordings_file() -> Path | None:
    """Say where the recordings are, if they are anywhere."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else None


def load(file: Path | None) -> list[Recording]:
    """Read the recordings, none where there is no file."""
    if file is None:
        return []
    with file.open(encoding="utf-8") as lines:
        return [Recording(**json.loads(line)) for line in lines]


class Server:
    """Answers as the providers did; each recording has an address of its own."""

    def __init__(self, url: str, recordings: list[Recording]) -> None:
        self._url = url
        self._numbers = {recording.name: number for number, recording in enumerate(recordings)}
        self.asked: list[HTTPRequest] = []

    def model(self, recording: Recording, route: Route, **settings: Any) -> LLM:
        """A model that is answered with a recording."""
        above = {
            "chat": "/chat/completions",
            "responses": "/responses",
            "anthropic": "/v1/messages",
            "gemini": "/models",
        }
        path = recording.path.partition(above[recording.wire])[0]
        given: dict[str, Any] = {
            "model": recording.model,
            "base_url": f"{self._url}/{self._numbers[recording.name]}{path}",
            "api_key": KEY,
            "route": route,
            "num_retries": 0,
            "api_mode": "responses" if recording.wire == "responses" else "chat",
        }
        return LLM.model_validate(given | settings)

    async def ask(self, recording: Recording, route: Route, **settings: Any) -> Reply:
        """Ask as it was asked: for a stream, where it was one."""
        model = self.model(recording, route, **settings)
        if not recording.streamed:
            return await model.complete(ASK)
        return await streamed(model)


async def streamed(model: LLM) -> Reply:
    """Ask for a stream and give the reply at its end."""
    async with model.stream(ASK) as stream:
        async for _ in stream:
            pass
    return stream.reply


@asynccontextmanager
async def serve_recordings(recordings: list[Recording], *, piece: int = 4096) -> AsyncGenerator[Server]:
    """Serve recordings while the context is open, streams in pieces of so many bytes."""

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        server.asked.append(request)
        recording = recordings[int(request.path.split("/")[1])]
        if recording.sse is None:
            await responder.send_json(recording.status, recording.response)
            return
        if not _wants_stream(request):
            await responder.send_json(400, {"error": {"message": "It was recorded as a stream."}})
            return
        await responder.start(recording.status, {"Content-Type": "text/event-stream"})
        data = recording.sse.encode()
        for start in range(0, len(data), piece):
            await responder.write(data[start : start + piece])
        await responder.end()

    async with serve_http(answer) as listening:
        server = Server(listening.url, recordings)
        yield server


def _wants_stream(request: HTTPRequest) -> bool:
    body: Mapping[str, Any] = request.json()
    return bool(body.get("stream")) or "streamGenerateContent" in request.path
