"""The interfaces of providers in the native route: requests to send and answers to decode, without any I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentcore.llm.caches import IdentityCache
from agentcore.llm.catalog import Features
from agentcore.llm.formats.decoding import DecodedReply, StreamDecoder
from agentcore.llm.model import CallContext, ResponseSchema
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model."""

    settings: LLMSettings
    messages: Sequence[Message]
    tools: Sequence[ToolSchema]
    context: CallContext
    features: Features
    streamed: bool

    @property
    def schema(self) -> ResponseSchema | None:
        """The shape that the reply is to have, unless the model is known to be held to none."""
        return None if self.features.response_schema is False else self.context.response_schema


class Wire(Protocol):
    """One interface of a provider."""

    def url(self, base_url: str) -> str:
        """Return the address to post to."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers that go with every request, the key among them."""
        ...

    def body(self, call: Call) -> bytes:
        """Write the request. What was written before is not written again: the same messages give the same bytes."""
        ...

    def answer(self, settings: LLMSettings, response: dict[str, Any]) -> DecodedReply:
        """Read an answer that came at once.

        Raises:
            ModelError: It says that there is none.
        """
        ...

    def decoder(self, settings: LLMSettings) -> StreamDecoder:
        """Read an answer that comes as a stream of events; `StreamDecoder.read` gets the JSON of each one's data."""
        ...


def to_json(value: Any) -> bytes:
    """Write JSON, as short as it can be."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def tool_cache(encode: Callable[[ToolSchema], Any]) -> IdentityCache[ToolSchema, bytes]:
    """Return a function that writes each tool once."""
    return IdentityCache(lambda tool: to_json(encode(tool)))


def bearer_headers(key: str | None) -> dict[str, str]:
    """Return the headers of a request to a provider that takes its key as a bearer's."""
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return headers


def own_fields(settings: LLMSettings) -> tuple[dict[str, Any], list[bytes]]:
    """Return the user's own fields of a request and, separately, the user's own tools."""
    more = dict(settings.extra_body)
    tools = more.get("tools")
    if not isinstance(tools, list):
        return more, []
    del more["tools"]
    return more, list(map(to_json, tools))


def array(parts: Iterable[bytes | bytearray]) -> list[bytes | bytearray]:
    """Write an array whose elements, or runs of elements, are ready."""
    written: list[bytes | bytearray] = [b"["]
    for part in parts:
        if len(written) > 1:
            written.append(b",")
        written.append(part)
    written.append(b"]")
    return written


def body_of(options: dict[str, Any], **ready: list[bytes | bytearray]) -> bytes:
    """Write a request whose long fields are ready, in parts: they come before the options, and are copied once.

    What is in both is written as the options have it: no reader agrees with another on a field that comes twice.
    """
    parts: list[bytes | bytearray] = []
    for name, value in ready.items():
        if name not in options:
            parts += [b',"%b":' % name.encode(), *value]
    if not parts:
        return to_json(options)
    parts[0] = b"{" + parts[0][1:]
    rest = to_json(options)[1:]
    return b"".join([*parts, b",", rest] if options else [*parts, rest])
