"""Answers of Google's generateContent interface, read: whole, or put together from the pieces of a stream.

The way there is in `gemini`. A stream is put together into the answer that would have come at once, and read as that.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic import JsonValue

from agentcore._text import replace_lone_surrogates as clean
from agentcore.errors import ContentPolicy, ModelError, ModelUnavailable
from agentcore.llm.failures import no_reply, refused_in_stream
from agentcore.llm.formats.decoding import DecodedReply, arguments_text, counted, read_arguments, stream_truncated
from agentcore.llm.formats.gemini import PART, SIGNATURE, SIGNED_TEXT
from agentcore.llm.formats.gemini_sources import cited, sources
from agentcore.llm.reply import Delta, ReasoningDelta, RefusalDelta, TextDelta, TokenLogprob, ToolCallDelta
from agentcore.llm.settings import LLMSettings
from agentcore.messages import (
    AudioBlock,
    Block,
    ImageBlock,
    Message,
    ProviderBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from agentcore.usage import Usage

_STOP_REASONS = {"STOP": "end", "MAX_TOKENS": "length"}
_BLOCKED = frozenset(
    {
        "BLOCKLIST",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "MODEL_ARMOR",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
"""Reasons to stop by which the provider says that it does not pass the reply on."""
_FAILED = frozenset(
    {
        "FINISH_REASON_UNSPECIFIED",
        "IMAGE_OTHER",
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "NO_IMAGE",
        "OTHER",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)
"""Reasons to stop that are the model's fault: it may well write a better reply when it is asked again."""


def read_reply(settings: LLMSettings, response: dict[str, Any]) -> DecodedReply:
    """Read an answer that came at once.

    Raises:
        ContentPolicy: The prompt or the reply was blocked.
        ModelError: It says that there is no reply.
    """
    candidates: list[dict[str, Any]] = response.get("candidates") or []
    if not candidates:
        raise _no_candidate(settings, response)
    candidate = candidates[0]
    content: dict[str, Any] = candidate.get("content") or {}
    message = decode_parts(content.get("parts") or (), settings.provider, response.get("responseId"))
    if not candidate.get("finishReason") and not message.content:
        raise no_reply(settings, response)
    reason = str(candidate.get("finishReason") or "STOP")
    words = clean(candidate.get("finishMessage") or "")
    text = f"{reason}: {words}" if words else reason
    if reason in _FAILED and not message.text:
        raise ModelUnavailable(
            f"{settings.model}: the provider gave the reply up, and says why: {text}.", model=settings.model
        )
    if reason in _BLOCKED:
        if not message.content:
            raise _blocked(settings, text)
        # What was said until then is worth something; who reads it has to know that it is not all.
        refused = RefusalBlock(text=words) if words else None
        message = message.model_copy(update={"content": (*message.content, *filter(None, [refused]))})
    message = _with_sources(message, candidate, settings.provider)
    used: dict[str, Any] = response.get("usageMetadata") or {}
    stop = "content_filter" if reason in _BLOCKED else _STOP_REASONS.get(reason, reason.lower())
    return DecodedReply(
        message=message,
        usage=decode_usage(used),
        stop_reason="tool_calls" if stop == "end" and message.tool_calls else stop,
        model=response.get("modelVersion"),
        provider_id=response.get("responseId"),
        service_tier=used.get("serviceTier"),
        logprobs=_read_logprobs(candidate.get("logprobsResult")),
        reported_usage=used,
    )


def _no_candidate(settings: LLMSettings, response: dict[str, Any]) -> ModelError:
    feedback: dict[str, Any] = response.get("promptFeedback") or {}
    if reason := feedback.get("blockReason"):
        words = clean(feedback.get("blockReasonMessage") or "")
        return _blocked(settings, f"{reason}: {words}" if words else str(reason))
    return no_reply(settings, response)


def _blocked(settings: LLMSettings, text: str) -> ContentPolicy:
    return ContentPolicy(f"{settings.model}: the provider refused the content ({text})", model=settings.model)


def _with_sources(message: Message, candidate: dict[str, Any], provider: str) -> Message:
    found = sources(candidate)
    if not found:
        return message
    blocks = [*cited(message.content, candidate, provider), ProviderBlock(provider=provider, data=clean(found))]
    return message.model_copy(update={"content": tuple(blocks)})


def decode_parts(parts: Iterable[dict[str, Any]], provider: str, reply_id: str | None) -> Message:
    """Read the parts of a reply, in their order; what only the provider can read is kept as it came."""
    blocks: list[Block] = []
    text: list[tuple[str, str | None]] = []
    thought = False
    calls = 0
    for part in parts:
        signature = clean(part.get("thoughtSignature") or "") or None
        kind = _kind(part)
        if kind in {"text", "thought"}:
            if text and thought != (kind == "thought"):
                blocks.extend(_join(text, provider, thought=thought))
                text = []
            thought = kind == "thought"
            text.append((clean(part["text"]), signature))
            if thought and signature:
                blocks.extend(_join(text, provider, thought=True))
                text = []
            continue
        blocks.extend(_join(text, provider, thought=thought))
        text = []
        if kind == "own":
            blocks.append(ProviderBlock(provider=provider, data={"type": PART, "part": clean(part)}))
            continue
        if signature:
            blocks.append(ProviderBlock(provider=provider, data={"type": SIGNATURE, "signature": signature}))
        if kind == "call":
            blocks.append(_decode_call(part["functionCall"], calls, reply_id))
            calls += 1
        else:
            _add_media(blocks, part["inlineData"], provider)
    blocks.extend(_join(text, provider, thought=thought))
    return Message(role="assistant", content=tuple(blocks))


def _kind(part: dict[str, Any]) -> str:
    if isinstance(part.get("functionCall"), dict):
        return "call"
    if isinstance(part.get("text"), str):
        return "thought" if part.get("thought") else "text"
    data = part.get("inlineData")
    if isinstance(data, dict) and not part.get("thought"):
        maker = str(cast("dict[str, Any]", data).get("mimeType") or "").partition("/")[0]
        if maker in {"audio", "image"}:
            return maker
    return "own"


def _join(pieces: list[tuple[str, str | None]], provider: str, *, thought: bool) -> Iterator[Block]:
    """Make one block of the pieces of a text, and keep how it was cut where a piece is signed."""
    words = "".join(text for text, _ in pieces)
    signatures = [signature for _, signature in pieces if signature]
    if thought:
        if words or signatures:
            yield ThinkingBlock(text=words, signature=signatures[-1] if signatures else None, provider=provider)
        return
    if not words:
        for signature in signatures:
            part: JsonValue = {"text": "", "thoughtSignature": signature}
            yield ProviderBlock(provider=provider, data={"type": PART, "part": part})
        return
    yield TextBlock(text=words)
    if not signatures:
        return
    parts: list[JsonValue] = []
    unsigned = 0
    for text, signature in pieces:
        if signature is None:
            unsigned += len(text)
            continue
        if unsigned:
            parts.append({"length": unsigned})
            unsigned = 0
        parts.append({"length": len(text), "signature": signature})
    if unsigned:
        parts.append({"length": unsigned})
    yield ProviderBlock(provider=provider, data={"type": SIGNED_TEXT, "parts": parts})


def _decode_call(call: dict[str, Any], number: int, reply_id: str | None) -> ToolCallBlock:
    return ToolCallBlock(
        id=_call_id(call, number, reply_id),
        name=clean(call.get("name") or ""),
        arguments=read_arguments(call.get("args")),
    )


def _call_id(call: dict[str, Any], number: int, reply_id: str | None) -> str:
    # Older models give no ids, and want none. Ours are not used again in another reply.
    return clean(str(call.get("id") or "")) or (f"{clean(str(reply_id))}_{number}" if reply_id else f"call_{number}")


def _add_media(blocks: list[Block], data: dict[str, Any], provider: str) -> None:
    kind, content = clean(data["mimeType"]), str(data.get("data") or "")
    last = blocks[-1] if blocks else None
    if kind.startswith("image/"):
        blocks.append(ImageBlock(data=content, media_type=kind))
    elif isinstance(last, AudioBlock) and last.media_type == kind and _is_raw(kind):
        # A stream of speech comes in pieces, each padded by itself.
        joined = b64encode(b64decode(last.data or "") + b64decode(content)).decode("ascii")
        blocks[-1] = last.model_copy(update={"data": joined})
    else:
        blocks.append(AudioBlock(data=content, media_type=kind, provider=provider))


def _is_raw(kind: str) -> bool:
    """Return whether sound of a kind is samples without a head, which may be joined."""
    return kind.lower().startswith(("audio/l16", "audio/pcm"))


def decode_usage(usage: dict[str, Any]) -> Usage:
    """Read what a reply used: what was thought, and what tools of the provider read, is counted apart from the rest."""
    usage = counted(usage)
    thought = usage.get("thoughtsTokenCount") or 0
    return Usage(
        requests=1,
        input_tokens=(usage.get("promptTokenCount") or 0) + (usage.get("toolUsePromptTokenCount") or 0),
        output_tokens=(usage.get("candidatesTokenCount") or 0) + thought,
        cache_read_tokens=usage.get("cachedContentTokenCount") or 0,
        reasoning_tokens=thought,
    )


def _read_logprobs(result: dict[str, Any] | None) -> tuple[TokenLogprob, ...] | None:
    if not result:
        return None
    tops: list[dict[str, Any]] = result.get("topCandidates") or []
    return tuple(
        TokenLogprob(
            token=clean(chosen.get("token") or ""),
            logprob=chosen.get("logProbability") or 0.0,
            top=tuple(
                (clean(other.get("token") or ""), other.get("logProbability") or 0.0)
                for other in (tops[position].get("candidates") or () if position < len(tops) else ())
            ),
        )
        for position, chosen in enumerate(result.get("chosenCandidates") or ())
    )


class GeminiDecoder:
    """Reads one stream."""

    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._parts: list[dict[str, Any]] = []
        self._candidate: dict[str, Any] = {}
        self._response: dict[str, Any] = {}
        self._calls = 0

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Take one event in and give its deltas.

        Raises:
            ModelError: The provider gives the reply up.
        """
        if error := event.get("error"):
            raise refused_in_stream(self._settings, error)
        if not event.get("candidates") and "usageMetadata" not in event:
            raise _no_candidate(self._settings, event)
        self._response |= {name: value for name, value in event.items() if name != "candidates" and value}
        for candidate in event.get("candidates") or ():
            if candidate.get("index"):
                continue  # one reply is asked for
            content: dict[str, Any] = candidate.get("content") or {}
            for name, value in candidate.items():
                if name != "content" and value:
                    self._keep(name, value)
            self._candidate.setdefault("index", 0)
            for part in content.get("parts") or ():
                self._parts.append(part)
                yield from self._deltas(part)
            if candidate.get("finishReason") in _BLOCKED and self._parts and (words := candidate.get("finishMessage")):
                yield RefusalDelta(text=clean(words))

    def _keep(self, name: str, value: Any) -> None:
        """Keep what a piece says besides its parts: what a later one leaves out was said before."""
        before = self._candidate.get(name)
        if name == "logprobsResult" and isinstance(before, dict) and isinstance(value, dict):
            old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", value)
            value = {
                key: [*(old.get(key) or ()), *(new.get(key) or ())]
                if isinstance(old.get(key) or new.get(key), list)
                else new.get(key, old.get(key))
                for key in {**old, **new}
            }
        elif isinstance(before, dict) and isinstance(value, dict):
            value = {**cast("dict[str, Any]", before), **{key: item for key, item in value.items() if item}}  # pyright: ignore[reportUnknownVariableType]
        self._candidate[name] = value

    def _deltas(self, part: dict[str, Any]) -> Iterator[Delta]:
        kind = _kind(part)
        if kind == "thought" and part["text"]:
            yield ReasoningDelta(text=clean(part["text"]))
        elif kind == "text" and part["text"]:
            yield TextDelta(text=clean(part["text"]))
        elif kind == "call":
            call: dict[str, Any] = part["functionCall"]
            number, self._calls = self._calls, self._calls + 1
            yield ToolCallDelta(
                index=number,
                id=_call_id(call, number, self._response.get("responseId")),
                name=clean(call.get("name") or "") or None,
                arguments=clean(arguments_text(call.get("args")) or "{}"),
            )

    def answer(self) -> DecodedReply:
        """Return the whole answer.

        Raises:
            ContentPolicy: The prompt or the reply was blocked.
            ModelConnectionError: The stream ended before its last word.
        """
        feedback: dict[str, Any] = self._response.get("promptFeedback") or {}
        if not self._candidate and feedback.get("blockReason"):
            return read_reply(self._settings, self._response)
        if not self._candidate.get("finishReason"):
            raise stream_truncated(self._settings.model)
        return read_reply(
            self._settings, {**self._response, "candidates": [{**self._candidate, "content": {"parts": self._parts}}]}
        )
