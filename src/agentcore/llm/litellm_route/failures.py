"""Errors of litellm as errors of this library.

It wraps what providers say in classes and prefixes of its own, not always the same for the same thing.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches

from agentcore.errors import ModelError
from agentcore.llm.error_bodies import delay_in_body, extract_embedded_message, extract_message, seconds_to_wait
from agentcore.llm.failures import ProviderError, model_error, no_connection
from agentcore.llm.names import PROVIDERS
from agentcore.llm.settings import LLMSettings

_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?::| -)\s*)+")
_MORE = re.compile(
    r"(?:\s*Original exception: |\s*Traceback \(most recent call last\)| LiteLLM Retried: | Received Model Group=).*",
    re.DOTALL,
)

_BYTES = re.compile(r"b'.*'|b\".*\"", re.DOTALL)

_NO_PROVIDER = "LLM Provider NOT provided"

_CONNECTION = frozenset(
    {"ConnectError", "ReadError", "WriteError", "NetworkError", "RemoteProtocolError", "CloseError"}
)


def as_model_error(error: BaseException, settings: LLMSettings) -> ModelError:
    """Return the error that a failed call means. A `ModelError` is returned as it is."""
    if isinstance(error, ModelError):
        return error
    error = getattr(error, "original_exception", None) or error
    if cause := _broken_connection(error):
        # litellm makes a 500 of it, which nobody sent.
        return no_connection(settings, cause)
    return model_error(
        ProviderError(
            status=_status(error),
            message=_message(error, settings),
            codes=_codes(error),
            retry_after=_retry_after(error),
            timed_out="Timeout" in type(error).__name__,
            lacks_package=isinstance(error, ImportError),
        ),
        settings,
    )


def _status(error: BaseException) -> int | None:
    for candidate in (getattr(error, "status_code", None), getattr(error, "code", None)):
        if isinstance(candidate, int) or (isinstance(candidate, str) and candidate.isdigit()):
            return int(candidate)
    return None


def _message(error: BaseException, settings: LLMSettings) -> str:
    message = extract_embedded_message(_passed_on(error)) or type(error).__name__
    if _NO_PROVIDER not in message:
        return message
    # Its own words are for those who call it.
    near = get_close_matches(settings.provider, PROVIDERS, 1)
    hint = f" Did you mean {near[0]!r}?" if near else " For a server of your own, say where it is: LLM(base_url=...)."
    return f"there is no provider {settings.provider!r}.{hint}"


def _passed_on(error: BaseException) -> str:
    """Return the provider's message without litellm's text around it: often the body as it came."""
    words = _PREFIXES.sub("", _MORE.sub("", str(error))).strip()
    if _BYTES.fullmatch(words):
        # Of streams it shows the bytes as Python writes them.
        with suppress(ValueError, SyntaxError):
            return literal_eval(words).decode("utf-8", "replace").strip()
    return words


def _codes(error: BaseException) -> str:
    codes = [getattr(link, name, None) for link in _chain(error) for name in ("code", "type")]
    with suppress(ValueError):
        codes.append(extract_message(json.loads(_passed_on(error)))[1])
    return " ".join(code for code in codes if isinstance(code, str))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _broken_connection(error: BaseException) -> str | None:
    """Return the innermost reason of a failed or broken connection; None if there was an answer."""
    broken = [link for link in _chain(error) if type(link).__name__ in _CONNECTION or isinstance(link, ConnectionError)]
    if not broken:
        return None
    return next((str(link) for link in reversed(broken) if str(link)), type(broken[-1]).__name__)


def _retry_after(error: BaseException) -> float | None:
    for link in _chain(error):
        for headers in (
            getattr(link, "litellm_response_headers", None),
            getattr(getattr(link, "response", None), "headers", None),
        ):
            if headers and (seconds := seconds_to_wait(headers)) is not None:
                return seconds
    with suppress(ValueError):
        return delay_in_body(json.loads(_passed_on(error)))
    return None
