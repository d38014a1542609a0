"""Text as models really send it."""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue

__all__ = ["clean", "clean_json"]


def clean(text: str) -> str:
    """Make text that can be stored: halves of a character that came apart are joined, lone halves are replaced.

    JSON can say half a character by its escape, and models, which cut text anywhere, do so.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: JsonValue) -> JsonValue:
    """Clean all the text in a JSON value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_json(item) for key, item in value.items()}
    return cast("JsonValue", value)
