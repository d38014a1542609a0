"""What goes wrong at a provider, as our errors: told apart by status and text, and said with what to do.

litellm wraps what providers say in classes and prefixes of its own, not always the same for the same thing, so the
words count more than the classes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContentPolicy,
    ContextWindowExceeded,
    MalformedHistory,
    ModelConnectionError,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from agentcore.llm.names import KEY_VARIABLES
from agentcore.llm.settings import LLMSettings

__all__ = ["as_model_error"]

_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?::| -)\s*)+")
_MORE = re.compile(
    r"(?:\s*Original exception: |\s*Traceback \(most recent call last\)| LiteLLM Retried: | Received Model Group=).*",
    re.DOTALL,
)

_TOO_LONG = re.compile(
    r"context.?length|context.?window|maximum context|prompt is too long|input is too long|exceed\w* the maximum number of"
    r" tokens|too many (?:input )?tokens|request_too_large|reduce the length of the messages",
    re.IGNORECASE,
)
_OUT_OF_ORDER = re.compile(
    r"tool_use.{0,80}tool_result|tool_result.{0,80}tool_use|tool_calls?.{0,80}must be followed|must be a response to a "
    r"prece+ding message|No tool call found|No tool output found|roles must alternate|function call turn comes "
    r"immediately|thinking.{0,60}(?:must|cannot) be|without its required following item|required 'reasoning' item",
    re.IGNORECASE | re.DOTALL,
)
_REFUSED = re.compile(
    r"content.?polic|content.?management|content_filter|safety (?:system|polic)|moderation", re.IGNORECASE
)
_NO_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|insufficient credits|billing", re.IGNORECASE
)
_NO_KEY = re.compile(
    r"api_key client option must be set|missing (?:.{0,30})api.?key|no api.?key|credentials", re.IGNORECASE
)
_CONNECTION = frozenset(
    {"ConnectError", "ReadError", "WriteError", "NetworkError", "RemoteProtocolError", "CloseError"}
)

_LONGEST = 2_000
_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class _Case:
    error: BaseException
    status: int | None
    said: str
    """What the provider said, without what litellm says around it."""
    codes: str
    """The codes it gave besides, by which some say what they mean."""

    def tells(self, pattern: re.Pattern[str]) -> bool:
        """Whether it is this that the provider means."""
        return bool(pattern.search(self.said) or pattern.search(self.codes))


_RULES: tuple[tuple[Callable[[_Case], bool], type[ModelError], str], ...] = (
    # The first that holds decides. Words before status: what is too long comes as 400, 413 and 500.
    (
        lambda case: case.status in {400, 413, 422, 500, None} and case.tells(_TOO_LONG),
        ContextWindowExceeded,
        "the conversation is longer than the model can read ({said})",
    ),
    (lambda case: "before any terminal event" in case.said, ModelConnectionError, "the reply broke off ({said})"),
    (
        lambda case: case.status == 400 and case.tells(_OUT_OF_ORDER),
        MalformedHistory,
        "the provider refused the order of the messages ({said})",
    ),
    (
        lambda case: case.status in {401, 403} or case.tells(_NO_KEY),
        AuthenticationError,
        "{key} ({said})",
    ),
    (
        lambda case: case.status == 402 or (case.status == 429 and case.tells(_NO_CREDIT)),
        RateLimited,
        "the account has no credit left ({said})",
    ),
    (lambda case: case.status == 429, RateLimited, "the provider's rate limit is reached ({said})"),
    (
        lambda case: case.status in {408, 504} or "Timeout" in type(case.error).__name__,
        ModelTimeout,
        "the provider took too long ({said})",
    ),
    (
        lambda case: case.status in {400, 422} and case.tells(_REFUSED),
        ContentPolicy,
        "the provider refused the content ({said})",
    ),
    (
        lambda case: case.status == 404,
        BadRequest,
        "there is no such model, or nothing at this address ({said}). Check model and base_url.",
    ),
    (lambda case: isinstance(case.error, ImportError), BadRequest, "this provider needs another package ({said})"),
    (
        lambda case: case.status is None or case.status >= 500 or case.status in {409, 425},
        ModelUnavailable,
        "the provider can't answer now ({said})",
    ),
    (lambda _: True, BadRequest, "the provider did not accept the request ({said})"),
)


def as_model_error(error: BaseException, settings: LLMSettings) -> ModelError:
    """Say what a failed call means. An error that is one of ours already is given back."""
    if isinstance(error, ModelError):
        return error
    error = getattr(error, "original_exception", None) or error
    case = _Case(error, _status(error), _words(error, settings), _codes(error))
    if cause := _broken_connection(error):
        # litellm makes a 500 of it, which nobody sent.
        return ModelConnectionError(f"{settings.model}: {_no_connection(settings, cause)}", model=settings.model)
    kind, template = next((kind, template) for holds, kind, template in _RULES if holds(case))
    sentence = template.replace("{key}", _which_key(settings)).replace("{said}", case.said)
    failure = kind(
        f"{settings.model}: {sentence}", model=settings.model, status=case.status, retry_after=_retry_after(error)
    )
    if case.status == 402 or (kind is RateLimited and case.tells(_NO_CREDIT)):
        failure.retryable = False
    return failure


def _status(error: BaseException) -> int | None:
    for candidate in (getattr(error, "status_code", None), getattr(error, "code", None)):
        if isinstance(candidate, int) or (isinstance(candidate, str) and candidate.isdigit()):
            return int(candidate)
    return None


def _words(error: BaseException, settings: LLMSettings) -> str:
    words = _MORE.sub("", str(error))
    words = _from_json(_PREFIXES.sub("", words).strip()) or type(error).__name__
    # A shorter one is no secret, and may be a part of any word.
    if (key := settings.revealed_key) and len(key) >= _SHORTEST_SECRET:
        words = words.replace(key, "***")
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _from_json(words: str) -> str:
    """Give the message of an error body that was passed on as it came."""
    try:
        body = json.loads(words)
        message = body["error"]["message"]
    except (ValueError, TypeError, KeyError):
        return words
    return message if isinstance(message, str) else words


def _codes(error: BaseException) -> str:
    codes = [getattr(link, name, None) for link in _chain(error) for name in ("code", "type")]
    return " ".join(code for code in codes if isinstance(code, str))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _broken_connection(error: BaseException) -> str | None:
    """Give the innermost reason, where no answer came at all or the connection broke."""
    broken = [link for link in _chain(error) if type(link).__name__ in _CONNECTION or isinstance(link, ConnectionError)]
    if not broken:
        return None
    return next((str(link) for link in reversed(broken) if str(link)), type(broken[-1]).__name__)


def _no_connection(settings: LLMSettings, cause: str) -> str:
    if settings.base_url is not None:
        return f"no connection to {settings.base_url}, or it broke ({cause}). Is the server running, is base_url right?"
    return f"no connection to {settings.provider}, or it broke ({cause}). Check the network and the proxy settings."


def _which_key(settings: LLMSettings) -> str:
    variables = KEY_VARIABLES.get(settings.provider, (f"{settings.provider.upper()}_API_KEY",))
    if settings.api_key is not None:
        return "the provider did not accept the key in LLM(api_key=...)"
    for variable in variables:
        if all(os.environ.get(name) for name in variable.split(" and ")):
            return f"the provider did not accept the key in {variable}"
    return f"there is no key for {settings.provider}. Set {' or '.join(variables)}, or pass LLM(api_key=...)"


def _retry_after(error: BaseException) -> float | None:
    for link in _chain(error):
        for headers in (
            getattr(link, "litellm_response_headers", None),
            getattr(getattr(link, "response", None), "headers", None),
        ):
            if headers and (seconds := _seconds(headers.get("retry-after-ms"), headers.get("retry-after"))) is not None:
                return seconds
    return None


def _seconds(milliseconds: str | None, value: str | None) -> float | None:
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
    except ValueError:
        return None
    return max(0.0, (when.astimezone(UTC) - datetime.now(UTC)).total_seconds())
