"""The words and changes that the tools here have in common where they describe a call to people."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from agentcore.display import DiffBlock, MarkdownBlock, code_span
from agentcore.tools import Action


def heading(*parts: str) -> tuple[MarkdownBlock, ...]:
    """Return what stands behind the tool's name, if anything does."""
    text = " ".join(filter(None, parts))
    return (MarkdownBlock(text=text, place="heading"),) if text else ()


def others(action: Action, *shown: str) -> str:
    """Return the arguments that were given and are not shown otherwise, each with its name."""
    names = action.model_fields_set.difference(shown)
    if names:
        fields = type(action).model_fields
        names = {name for name in names if getattr(action, name) != fields[name].default}
    if not names:
        return ""
    values = action.model_dump(mode="json", include=names)
    return " ".join(f"{name}={code_span(_as_written(value))}" for name, value in values.items())


def _as_written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) else to_json(value).decode()


def added(text: str) -> str:
    """Return the text as lines that are new."""
    return "".join(f"+{line}\n" for line in text.removesuffix("\n").split("\n")) if text else ""


def replaced(old: str, new: str) -> str:
    """Return a text and what comes in its place as a diff. Where they are in the file is not known.

    Between the first and the last line that differ it compares nothing, so that it takes no time with any text.
    """
    before, after = old.split("\n"), new.split("\n")
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    marked = [
        *(f" {line}\n" for line in before[:first]),
        *(f"-{line}\n" for line in before[first : len(before) - last] if old),
        *(f"+{line}\n" for line in after[first : len(after) - last] if new),
        *(f" {line}\n" for line in before[len(before) - last :]),
    ]
    return "".join(marked)


def file_diff(path: str | None, diff: str | None) -> tuple[DiffBlock, ...]:
    """Return the change that came out, if there can have been one."""
    return () if diff is None else (DiffBlock(path=path, diff=diff),)
