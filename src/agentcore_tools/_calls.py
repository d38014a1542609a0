"""Shared parts of the tools' calls: other names for arguments, answers that are text, and descriptions for people."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue
from pydantic_core import to_json

from agentcore.display import DiffBlock, MarkdownBlock, code_span
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Arguments, Ignored, Observation

# No postponed annotations: pydantic would evaluate each of them again, at every import.


FILE_NAMES: Final[tuple[str, ...]] = ("path", "file_path", "filepath", "absolute_path", "filename", "file")
"""Names that models use for a file."""


IGNORED: Final[Ignored] = ("description", "explanation", "instruction", "requires_approval", "security_risk")
"""Arguments that models send with any call, out of habit."""


def rename(arguments: Arguments, other_names: Mapping[str, str]) -> Arguments:
    """Put the tool's own names in the place of others that models use, unless an argument has that name already."""
    renamed: Arguments = {}
    for name, value in arguments.items():
        meant = other_names.get(name, name)
        renamed[name if meant in arguments or meant in renamed else meant] = value
    return renamed


class TextAnswer(Observation):
    """An answer that is text for the model, and fields for programs."""

    text: str
    """The text for the model."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,)

    def to_data(self) -> dict[str, JsonValue]:
        """Return the other fields; the text is in the content already, and a medium is."""
        return self.model_dump(mode="json", exclude={"text", "medium"})


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
