"""Failures of plain HTTP as errors of this library."""

from __future__ import annotations

import json
import re
import ssl

import httpx

from agentcore.errors import BadRequest, ModelError
from agentcore.llm.error_bodies import delay_in_body, extract_message, seconds_to_wait
from agentcore.llm.failures import ProviderError, model_error, no_connection
from agentcore.llm.keys import hide
from agentcore.llm.settings import LLMSettings

_REQUEST_IDS = ("x-request-id", "request-id", "cf-ray", "x-amzn-requestid")

_CLOSED = (httpx.ReadError, httpx.WriteError, httpx.CloseError)
_TAGS = re.compile(r"<(?:script|style).*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def refused(settings: LLMSettings, response: httpx.Response, body: bytes) -> ModelError:
    """Return the error for an answer that is not a reply."""
    status, headers = response.status_code, response.headers
    if response.has_redirect_location:
        # Not followed: a key goes only where the user said.
        return BadRequest(
            f"{settings.model}: {response.url} sends on to {hide(headers['location'], settings)!r}. If that is the right place, write it "
            "into LLM(base_url=...).",
            model=settings.model,
            status=status,
        )
    text = body.decode("utf-8", "replace").strip()
    message, codes, delay = _read(text)
    seconds = seconds_to_wait(headers)
    return model_error(
        ProviderError(
            status=status,
            message=message or f"HTTP {status}",
            codes=codes,
            retry_after=delay if seconds is None else seconds,
            request_id=next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        ),
        settings,
    )


def broken_connection(settings: LLMSettings, error: Exception, url: str) -> ModelError:
    """Return the error for a connection that failed or broke."""
    host = httpx.URL(url).netloc.decode()
    if isinstance(error, httpx.TimeoutException):
        return no_connection(settings, "it took too long to connect", host=host)
    # Some libraries say only that the connection broke: what it was about is further inside.
    inside: BaseException | None = error
    while inside is not None and not isinstance(inside, ssl.SSLCertVerificationError):
        inside = inside.__cause__ or inside.__context__
    reason = str(inside or error) or (
        "the other side closed it" if isinstance(error, _CLOSED) else type(error).__name__
    )
    return no_connection(settings, reason, host=host)


def _read(text: str) -> tuple[str, str, float | None]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        if text[:200].lstrip().lower().startswith(("<!doctype", "<html", "<?xml")):
            return f"a page instead of an answer: {' '.join(_TAGS.sub(' ', text[:20_000]).split())[:300]}", "", None
        return text, "", None
    return *extract_message(body), delay_in_body(body)
