"""Error bodies of providers: the message, the codes, the delay, and whether the request was too long."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from pydantic import JsonValue

_DELAY = re.compile(r"(?:retry|try again) in (\d{1,6}(?:\.\d+)?) ?(ms|s)\b", re.IGNORECASE)
_DURATION = re.compile(r"(\d{1,6}(?:\.\d+)?)s")


def extract_message(body: JsonValue) -> tuple[str, str]:
    """Find the sentence and the codes, in the shapes that providers give them."""
    if isinstance(body, list) and body:
        return extract_message(body[0])
    if not isinstance(body, dict):
        return ("" if body is None else str(body)), ""
    if not body:
        return "", ""
    fields = body
    inside = fields.get("error")
    if isinstance(inside, dict):
        fields = inside
    elif isinstance(inside, str):
        fields = {**fields, "message": inside}
    message = next((value for name in ("message", "detail", "msg") if isinstance(value := fields.get(name), str)), None)
    metadata = fields.get("metadata")
    if isinstance(metadata, dict) and isinstance(raw := metadata.get("raw"), str):
        # A gateway's own sentence says only that the provider behind it refused.
        behind = extract_embedded_message(raw)
        message = f"{message}: {behind}" if message else behind
    given = (fields.get(name) for name in ("code", "type", "status"))
    codes = [value for value in given if isinstance(value, str)]
    codes += _codes_of_details(fields.get("details"))
    return message if message is not None else json.dumps(body, ensure_ascii=False), " ".join(codes)


def _codes_of_details(details: JsonValue) -> Iterator[str]:
    """Yield the codes in what Google says besides its sentence: why, and which limit is reached."""
    for detail in _dicts(details):
        if isinstance(reason := detail.get("reason"), str):
            yield reason
        for violation in _dicts(detail.get("violations")):
            if isinstance(quota := violation.get("quotaId"), str):
                yield quota


def _dicts(value: JsonValue) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def extract_embedded_message(words: str) -> str:
    """Return the message of an error body that was passed on as it came."""
    try:
        body = json.loads(words)
        message = body["error"]["message"]
    except (ValueError, TypeError, KeyError):
        return words
    return message if isinstance(message, str) else words


def find_error(body: dict[str, Any]) -> JsonValue:
    """Return the error in a body that came in place of a reply; None where it holds none.

    A few servers leave out the word "error": the body is one.
    """
    if error := body.get("error"):
        return error
    has_message = any(isinstance(body.get(name), str) for name in ("message", "detail", "msg"))
    return body if has_message or body.get("object") == "error" or body.get("success") is False else None


def delay_in_body(body: JsonValue) -> float | None:
    """Read after how many seconds to try again, where the body says so: in Google's `RetryInfo`, or in words."""
    if isinstance(body, list):
        return delay_in_body(body[0]) if body else None
    if not isinstance(body, dict):
        return None
    inside = body.get("error")
    fields = inside if isinstance(inside, dict) else body
    for detail in _dicts(fields.get("details")):
        if isinstance(delay := detail.get("retryDelay"), str) and (found := _DURATION.fullmatch(delay)):
            return float(found[1])
    message = fields.get("message")
    if isinstance(message, str) and (found := _DELAY.search(message)):
        return float(found[1]) / (1000 if found[2].lower() == "ms" else 1)
    return None


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Read after how many seconds the provider asks to be tried again, where it does."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
        if value is None:
            return None
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value or "")
        return max(0.0, (when.astimezone(UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


_TEXTS = (
    # OpenAI, vLLM, Fireworks, Cerebras, LM Studio, and compatible servers
    r"context.?length",
    r"context.?window",
    r"maximum context",
    r"reduce the length of the messages",
    # Anthropic
    r"prompt is too long",
    r"exceed context limit",
    r"request_too_large",
    # Bedrock
    r"input is too long",
    r"too many (?:input )?tokens",
    # Google, at both of its addresses
    r"exceed\w* the maximum number of tokens",
    r"input token count is \d+ but (?:the )?model only supports",
    # llama.cpp: ggml-org/llama.cpp#19774, and with status 500 in the middle of a reply
    r"exceeds the available context size",
    r"context size has been exceeded",
    # xAI: cline/cline#3120
    r"maximum prompt length is",
    # Moonshot: MoonshotAI/kimi-cli#2011
    r"exceeded model token limit",
    # DashScope: QwenLM/qwen-code#98
    r"range of input length should be",
    # SGLang and Volcengine Ark: sgl-project/sglang#4048, langgenius/dify#32221
    r"input length \S+ exceeds the maximum (?:allowed )?length",
    # Groq, whose limit of a minute is below what the model reads: RooCodeInc/Roo-Code#5729
    r"reduce your message size",
    # Z.ai, code 1261
    r"prompt exceeds max(?:imum)? length",
    # Together and Text Generation Inference
    r"`inputs` tokens \+",
)

_TOO_LONG = re.compile("|".join(_TEXTS), re.IGNORECASE)


def says_too_long(message: str, codes: str) -> bool:
    """Return whether an error says that the request is too long."""
    return bool(_TOO_LONG.search(message) or _TOO_LONG.search(codes))
