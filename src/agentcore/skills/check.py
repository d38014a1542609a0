"""The strict rules: those of the AgentSkills specification for a SKILL.md, and our own for a single Markdown file.

Loading (`skill.py`) is lenient; this is for authors, whose skills other clients are to read as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentcore._text import remove_invisible
from agentcore.skills.frontmatter import Field, Frontmatter, Malformed, read_frontmatter
from agentcore.skills.skill import (
    MOST_DESCRIPTION,
    MOST_NAME,
    Source,
    items_of,
    normalize,
    one_line,
    text_field,
    usable_name,
)

_MOST_COMPATIBILITY: Final = 500
_FIELDS: Final = frozenset({"name", "description", "license", "allowed-tools", "metadata", "compatibility"})
_TYPES: Final = ("knowledge", "repo", "task")


def check_skill(text: str, source: Source) -> Sequence[Malformed]:
    """Return what is wrong with a file by the strict rules, in the order of the lines."""
    return sorted(_check(text, source), key=lambda each: each.line)


def _check(text: str, source: Source) -> Sequence[Malformed]:
    try:
        front = read_frontmatter(text)
    except Malformed as error:
        return [error]
    found: list[Malformed] = []
    if remove_invisible(text) != text:
        found.append(Malformed(_line_of_invisible(text), "There are invisible characters."))
    if source.is_folder:
        if front is None:
            return [*found, Malformed(1, "There is no frontmatter: the first line has to be `---`.")]
        return [*found, *front.quirks, *_check_fields(front, source)]
    return [*found, *(() if front is None else _check_flat(front, source))]


def _line_of_invisible(text: str) -> int:
    return next(number for number, line in enumerate(text.split("\n"), 1) if remove_invisible(line) != line)


def _check_fields(front: Frontmatter, source: Source) -> Iterator[Malformed]:
    for field in front.fields.keys() - _FIELDS:
        yield Malformed(
            front.lines[field],
            f"`{one_line(field, 80)}` is not a field of the specification: other clients may refuse it.",
        )
    if "name" not in front.fields:
        yield Malformed(1, "There is no `name`.")
    else:
        for sentence in _check_name(front.fields["name"], source.expected):
            yield Malformed(front.lines["name"], sentence)
    if "description" not in front.fields:
        yield Malformed(1, "There is no `description`, which says when to use the skill.")
    else:
        yield from _check_length(front, "description", MOST_DESCRIPTION, needed=True)
    if "compatibility" in front.fields:
        yield from _check_length(front, "compatibility", _MOST_COMPATIBILITY)


def _check_name(value: Field, folder: str) -> Iterator[str]:
    if not isinstance(value, str) or not value.strip():
        yield "`name` has to be text."
        return
    name = normalize(value.strip())
    if len(name) > MOST_NAME:
        yield f"`name` has {len(name)} characters; {MOST_NAME} are the most."
    if name != name.lower():
        yield "`name` has to be in lower case."
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield "`name` has a '-' at an end, or two in a row."
    if not all(character.isalnum() or character == "-" for character in name):
        yield "`name` may have letters, digits and '-' only."
    if normalize(folder) != name:
        yield f"`name` is {one_line(name, 80)!r}, and the folder is {one_line(folder, 80)!r}: they have to be the same."


def _check_length(front: Frontmatter, field: str, most: int, *, needed: bool = False) -> Iterator[Malformed]:
    value = front.fields[field]
    if not isinstance(value, str) or (needed and not value.strip()):
        yield Malformed(front.lines[field], f"`{field}` has to be text.")
    elif len(value) > most:
        yield Malformed(front.lines[field], f"`{field}` has {len(value):,} characters; {most:,} are the most.")


def _check_flat(front: Frontmatter, source: Source) -> Iterator[Malformed]:
    kind = text_field(front, "type")
    if kind and kind not in _TYPES:
        yield Malformed(front.lines["type"], f"`type` has to be one of {', '.join(_TYPES)}.")
    if kind == "knowledge" and not items_of(front, "triggers"):
        yield Malformed(front.lines["type"], "A skill of the type knowledge needs `triggers`, or nothing activates it.")
    for field in ("triggers", "paths", "inputs"):
        if isinstance(front.fields.get(field), dict):
            yield Malformed(front.lines[field], f"`{field}` has to be a list.")
    notes: list[Malformed] = []
    try:
        usable_name(front, source, notes)
    except Malformed as error:
        notes = [error]
    yield from notes
