"""Errors of providers as errors of this library: classified by status and text, with advice in the message.

Both routes pass the provider's answer as a `ProviderError`. Providers use the same status for different things, and
different ones for the same, so the words count more.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

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
from agentcore.llm.error_bodies import delay_in_body, extract_message, find_error, says_too_long
from agentcore.llm.keys import hide, key_variables
from agentcore.llm.settings import LLMSettings

_OUT_OF_ORDER = re.compile(
    r"tool_use.{0,80}tool_result|tool_result.{0,80}tool_use|tool_calls?.{0,80}must be followed|must be a response to a "
    r"prece+ding message|No tool call found|No tool output found|roles must alternate|function call turn comes "
    r"immediately|thinking.{0,60}(?:must|cannot) be|without its required following item|required 'reasoning' item",
    re.IGNORECASE | re.DOTALL,
)
_REFUSED = re.compile(
    r"content.?polic|content.?management|content_filter|safety (?:system|polic)|moderation|invalid_prompt|was flagged",
    re.IGNORECASE,
)
_NOT_A_CALL = re.compile(r"tool_use_failed|MALFORMED_FUNCTION_CALL")
_NO_CREDIT = re.compile(
    r"insufficient_quota|exceeded_current_quota|credit balance|credits? (?:is|are) depleted|insufficient (?:credits|balance)",
    re.IGNORECASE,
)
_MAYBE_NO_CREDIT = re.compile(r"exceeded your current quota|billing", re.IGNORECASE)
"""Also in Google's errors about limits per minute, which name a delay or the code of a limit as well."""
_A_LIMIT = re.compile(r"RESOURCE_EXHAUSTED")
_OF_THE_DAY = re.compile(r"PerDay")
_NO_KEY = re.compile(
    r"api_key client option must be set|missing (?:.{0,30})api.?key|no api.?key|credentials", re.IGNORECASE
)
_WRONG_KEY = re.compile(
    r"incorrect api key|api key not valid|invalid api.?key|API_KEY_INVALID|invalid_api_key", re.IGNORECASE
)
_NOT_SERVED = re.compile(r"unsupported_country|(?:country|user location).{0,40} not (?:\w+ )?supported", re.IGNORECASE)
_STATUS_OF_TYPE = {
    "authentication_error": 401,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "api_error": 500,
    "timeout_error": 504,
    "billing_error": 402,
}

_NOT_TRUSTED = "CERTIFICATE_VERIFY_FAILED"
_LONGEST = 2_000
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class ProviderError:
    """An error as a provider reports it."""

    status: int | None
    """The status of HTTP, where there was an answer."""
    message: str
    """The provider's own sentence, without what wrappers put around it."""
    codes: str = ""
    """The codes it gave besides, by which some say what they mean."""
    retry_after: float | None = None
    request_id: str | None = None
    timed_out: bool = False
    """True if a time limit ended it."""
    lacks_package: bool = False
    """True if a package is missing that this provider needs."""

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Return whether the message or the codes match."""
        return bool(pattern.search(self.message) or pattern.search(self.codes))


def _has_no_credit(error: ProviderError) -> bool:
    if error.status == 402 or (error.status in {400, 403, 429} and error.matches(_NO_CREDIT)):
        return True
    passes = error.retry_after is not None or error.matches(_A_LIMIT)
    return error.status == 429 and error.matches(_MAYBE_NO_CREDIT) and not passes


def _is_of_the_day(error: ProviderError) -> bool:
    return error.status == 429 and error.matches(_OF_THE_DAY)


_RULES: tuple[tuple[Callable[[ProviderError], bool], type[ModelError], str], ...] = (
    # The first that holds decides. Words before status: what is too long comes as 400, 413 and 500.
    (
        lambda error: error.status in {400, 413, 422, 500, None} and says_too_long(error.message, error.codes),
        ContextWindowExceeded,
        "the conversation is longer than the model can read ({message}). Condense or shorten it, or choose one that reads more.",
    ),
    (
        lambda error: "before any terminal event" in error.message,
        ModelConnectionError,
        "the reply broke off ({message})",
    ),
    (
        lambda error: error.status == 400 and error.matches(_OUT_OF_ORDER),
        MalformedHistory,
        "the provider refused the order of the messages ({message})",
    ),
    (
        # It may well write a better one when asked again.
        lambda error: error.matches(_NOT_A_CALL),
        ModelUnavailable,
        "the model made a call that its provider does not pass on ({message})",
    ),
    (_has_no_credit, RateLimited, "the account has no credit left ({message})"),
    (
        lambda error: error.status in {400, 403, 422} and error.matches(_REFUSED),
        ContentPolicy,
        "the provider refused the content ({message})",
    ),
    (
        lambda error: error.status in {400, 403} and error.matches(_NOT_SERVED),
        AuthenticationError,
        "the provider does not serve the place that this request comes from ({message}). Choose another provider.",
    ),
    (
        lambda error: (
            error.status in {401, 403} or error.matches(_NO_KEY) or (error.status == 400 and error.matches(_WRONG_KEY))
        ),
        AuthenticationError,
        "{key}",
    ),
    (_is_of_the_day, RateLimited, "the provider's limit of a day is reached ({message})"),
    (lambda error: error.status == 429, RateLimited, "the provider's rate limit is reached ({message})"),
    (
        lambda error: error.status in {408, 504} or error.timed_out,
        ModelTimeout,
        "the provider took too long ({message})",
    ),
    (
        lambda error: error.status == 404,
        BadRequest,
        "there is no such model, or nothing at this address ({message}). Check model and base_url.",
    ),
    (
        lambda error: error.status == 407,
        BadRequest,
        "the proxy between here and the provider wants a name and a password ({message}). Write them into HTTPS_PROXY.",
    ),
    (lambda error: error.lacks_package, BadRequest, "this provider needs another package ({message})"),
    (
        lambda error: error.status is None or error.status >= 500 or error.status in {409, 425},
        ModelUnavailable,
        "the provider can't answer now ({message})",
    ),
    (lambda _: True, BadRequest, "the provider did not accept the request ({message})"),
)


def model_error(error: ProviderError, settings: LLMSettings) -> ModelError:
    """Return the error that a provider's answer means. All answers pass here, so that keys in them are hidden."""
    message = cut(hide(error.message, settings))
    request_id = None if error.request_id is None else hide(error.request_id, settings)
    kind, template = next((kind, template) for holds, kind, template in _RULES if holds(error))
    sentence = template.replace("{key}", which_key(settings, "{message}")).replace("{message}", message)
    request = "" if request_id is None else f" [request {request_id}]"
    failure = kind(
        f"{settings.model}: {sentence}{request}",
        model=settings.model,
        status=error.status,
        retry_after=error.retry_after,
        request_id=request_id,
    )
    if kind is RateLimited and (_has_no_credit(error) or _is_of_the_day(error)):
        failure.retryable = False
    return failure


def refused_in_stream(settings: LLMSettings, error: JsonValue) -> ModelError:
    """Return the error for one that came inside a stream, or in a body with status 200."""
    message, codes = extract_message(error)
    if isinstance(error, list) and error:
        error = error[0]
    if isinstance(error, dict) and isinstance(inside := error.get("error"), dict):
        error = inside
    given = [error.get(name) for name in ("status_code", "code")] if isinstance(error, dict) else []
    status = next(
        (int(code) for code in given if isinstance(code, int) or (isinstance(code, str) and code.isdigit())), None
    )
    if status is None:
        # A provider that gives up in the middle mostly says no more than that: it may pass.
        status = next((_STATUS_OF_TYPE[word] for word in codes.split() if word in _STATUS_OF_TYPE), 500)
    return model_error(
        ProviderError(
            status=status, message=message or "without a reason", codes=codes, retry_after=delay_in_body(error)
        ),
        settings,
    )


def no_reply(settings: LLMSettings, body: dict[str, Any]) -> ModelError:
    """Return the error for a body with status 200 that is not a reply: an error in some shape, or something else."""
    if error := find_error(body):
        return refused_in_stream(settings, error)
    if not body:
        return ModelUnavailable(f"{settings.model}: the provider answered with nothing.", model=settings.model)
    shown = hide(json.dumps(body, ensure_ascii=False), settings)[:_SHOWN]
    return ModelUnavailable(
        f"{settings.model}: the provider answered with nothing that is a reply of this interface: {shown}. Check "
        "base_url and api_mode.",
        model=settings.model,
    )


def no_connection(settings: LLMSettings, cause: str, *, host: str | None = None) -> ModelConnectionError:
    """Return the error for a connection that failed or broke."""
    failure = ModelConnectionError(
        f"{settings.model}: {_no_connection(settings, hide(cause, settings), host)}", model=settings.model
    )
    if _NOT_TRUSTED in cause:
        failure.retryable = False  # it will be the same one in a minute
    return failure


def too_late(settings: LLMSettings, what: str, setting: str) -> ModelTimeout:
    """Return the error for a time limit, named as the setting, that has passed."""
    return ModelTimeout(
        f"{settings.model}: {what} within {getattr(settings, setting):g} s. If this model needs longer, set "
        f"LLM({setting}=...).",
        model=settings.model,
    )


def cut(words: str) -> str:
    """Shorten a message that is too long to read."""
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _no_connection(settings: LLMSettings, cause: str, host: str | None) -> str:
    at = "" if host is None else f" at {host}"
    where = settings.base_url or f"{settings.provider}{at}"
    if _NOT_TRUSTED in cause:
        return (
            f"no connection to {where}: its certificate is not one that this machine trusts ({cause}). If it is the right "
            "server, set SSL_CERT_FILE to a file with the certificate of the authority that signed it."
        )
    if settings.base_url is not None:
        return f"no connection to {where}, or it broke ({cause}). Is the server running, is base_url right?"
    return f"no connection to {where}, or it broke ({cause}). Check the network and the proxy settings."


def which_key(settings: LLMSettings, message: str = "") -> str:
    """Describe which key was not accepted, or where a key is looked for, and what to do."""
    variables = key_variables(settings)
    reason = f" ({message})" if message else ""
    if settings.api_key is not None and not (settings.revealed_key or "").strip():
        return f"the key in LLM(api_key=...) is empty. Pass the key, or leave it out and set {' or '.join(variables)}"
    if settings.api_key is not None:
        return f"the provider did not accept the key in LLM(api_key=...){reason}. {_CHECK_KEY}"
    for variable in variables:
        if all(os.environ.get(name, "").strip() for name in variable.split(" and ")):
            return f"the provider did not accept the key in {variable}{reason}. {_CHECK_KEY}"
    return f"there is no key for {settings.provider}. Set {' or '.join(variables)}, or pass LLM(api_key=...){reason}"


_CHECK_KEY = "Check that it is complete, still valid, and of this provider, or put another one there."
