"""The key of a model: where it comes from, and how it stays out of what servers and libraries say."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from agentcore._text import Mask, already_masked
from agentcore.errors import AuthenticationError
from agentcore.llm.providers import KEY_VARIABLES
from agentcore.llm.settings import LLMSettings
from agentcore.secrets import Masker

_SHORTEST = 6
"""Shorter ones are no secrets, and may be a part of any word."""


def key_variables(settings: LLMSettings) -> tuple[str, ...]:
    """Return the environment variables that may hold the key."""
    return KEY_VARIABLES.get(settings.provider, (f"{settings.provider.upper()}_API_KEY",))


def find_key(settings: LLMSettings) -> str | None:
    """Return the key that the settings or the environment have.

    Raises:
        AuthenticationError: It can't be one.
    """
    if settings.api_key is not None:
        return _sendable((settings.revealed_key or "").strip(), "LLM(api_key=...)", settings) or None
    for variable in key_variables(settings):
        if given := os.environ.get(variable, "").strip():
            return _sendable(given, variable, settings)
    return None


def _sendable(key: str, where: str, settings: LLMSettings) -> str:
    odd = next((at for at, character in enumerate(key) if not " " <= character <= "~"), None)
    if odd is None:
        return key
    raise AuthenticationError(
        f"{settings.model}: the key in {where} can't be one: character {odd + 1} of {len(key)} is {key[odd]!r}. Copy it "
        "again.",
        model=settings.model,
    )


_mask: ContextVar[Mask] = ContextVar("mask", default=already_masked)


@contextmanager
def masking_errors(mask: Mask) -> Generator[None]:
    """Replace secrets in what the errors of model calls quote, before they are cut to a length.

    A provider may repeat any part of a request. Half of a secret could not be masked any more.
    """
    token = _mask.set(mask)
    try:
        yield
    finally:
        _mask.reset(token)


def hide(words: str, settings: LLMSettings) -> str:
    """Put marks in the place of the key, of all secret headers and of the conversation's secrets, plain or encoded.

    Who is asked may repeat them.
    """
    words = _mask.get()(words)
    known = [("API_KEY", settings.revealed_key or "")]
    for variables in key_variables(settings):
        known += [(variable, os.environ.get(variable, "")) for variable in variables.split(" and ")]
    for name, value in settings.revealed_headers.items():
        if name in settings.secret_headers:
            # "Bearer ..." may come back without its first word.
            known += [(name, piece) for piece in (value, *value.split()[1:])]
    return _masker(tuple((name, value) for name, value in known if len(value.strip()) >= _SHORTEST)).mask_text(words)


@lru_cache(maxsize=64)
def _masker(known: tuple[tuple[str, str], ...]) -> Masker:
    return Masker(known)
