"""The YAML between two lines of `---` at the beginning of a Markdown file, read with bounds and as text.

Every scalar stays the text that it is written as, as the AgentSkills specification's own reader has it: YAML's booleans,
dates and tags make nothing here. Aliases, which multiply, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from agentcore._text import replace_lone_surrogates

_MOST: Final = 16_384
_DEEPEST: Final = 8
_MOST_EVENTS: Final = 4_000

Field: TypeAlias = "str | list[Field] | dict[str, Field]"
"""A value in a frontmatter."""


class Malformed(Exception):
    """A file that is not a skill, and the line that shows it."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The frontmatter of a file, and what is below it."""

    fields: dict[str, Field]
    lines: dict[str, int]
    """The line of each field in the file."""
    quirks: tuple[Malformed, ...]
    """Deviations that a strict reader refuses and this one understands."""
    body: str


def read_frontmatter(text: str) -> Frontmatter | None:
    """Read the frontmatter of a file; None where there is none.

    Raises:
        Malformed: It is not closed, not YAML, not a mapping, or beyond a bound.
    """
    if not text.startswith("---"):
        return None
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise Malformed(1, "The first line has to be `---` alone.")
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == "---"), None)
    if end is None:
        raise Malformed(1, "The frontmatter is not closed by a line `---`.")
    source = "\n".join(lines[1:end])
    if len(source) > _MOST:
        raise Malformed(1, f"The frontmatter has more than {_MOST:,} characters.")
    body = "\n".join(lines[end + 1 :])
    try:
        fields, places, quirks = _read_mapping(source)
    except Malformed as error:
        # People write `description: Use this: ...` without quotes, and other clients take it.
        quoted = _quote_colons(source)
        if quoted == source:
            raise
        try:
            fields, places, quirks = _read_mapping(quoted)
        except Malformed:
            raise error from None
        quirks = [error, *quirks]
    return Frontmatter(fields, places, tuple(quirks), body)


_WITH_COLON: Final = re.compile(r"^([\w-]+):[ \t]+([^\s'\"|>\[{&*!#].*:(?:\s.*)?)$", re.MULTILINE)


def _quote_colons(source: str) -> str:
    return _WITH_COLON.sub(lambda match: f"{match[1]}: '{match[2].replace(chr(39), chr(39) * 2)}'", source)


_Read: TypeAlias = tuple[dict[str, Field], dict[str, int], list[Malformed]]


def _read_mapping(source: str) -> _Read:
    # Here because importing it takes longer than importing all the rest of this package, and few conversations have skills.
    import yaml  # noqa: PLC0415

    events = cast("Iterator[Any]", yaml.parse(source, Loader=yaml.SafeLoader))
    try:
        return _Builder().build(events)
    except yaml.MarkedYAMLError as error:
        line = 0 if error.problem_mark is None else error.problem_mark.line
        raise Malformed(line + 2, f"Not YAML: {error.problem or error.context}.") from error
    except yaml.YAMLError as error:
        raise Malformed(1, f"Not YAML: {str(error).splitlines()[0]}.") from error
    except (ValueError, OverflowError) as error:
        # An escape of a character that there is not.
        raise Malformed(1, f"Not YAML: {error}.") from error


class _Open:
    """A mapping or sequence that is not at its end."""

    def __init__(self, value: dict[str, Field] | list[Field]) -> None:
        self.value = value
        self.key: str | None = None


class _Builder:
    """Builds values of YAML's events without recursion, so that no nesting is too deep for it."""

    def __init__(self) -> None:
        self._stack: list[_Open] = []
        self._lines: dict[str, int] = {}
        self._quirks: list[Malformed] = []
        self._top: Field | None = None

    def build(self, events: Iterator[Any]) -> _Read:
        for number, event in enumerate(events):
            line = event.start_mark.line + 2
            if number > _MOST_EVENTS:
                raise Malformed(line, f"The frontmatter has more than {_MOST_EVENTS:,} parts.")
            self._take(event, line)
        if not isinstance(self._top, dict):
            raise Malformed(1, "The frontmatter is not a mapping of names to values.")
        return self._top, self._lines, self._quirks

    def _take(self, event: Any, line: int) -> None:
        kind = type(event).__name__
        if kind == "AliasEvent":
            raise Malformed(line, "Aliases (`*name`) are not allowed.")
        if getattr(event, "anchor", None) is not None:
            self._quirks.append(Malformed(line, "Anchors (`&name`) are not allowed."))
        if getattr(event, "tag", None) not in {None, "!"}:
            self._quirks.append(Malformed(line, f"Tags are not allowed: {event.tag}."))
        match kind:
            case "ScalarEvent":
                self._put(cast("str", replace_lone_surrogates(event.value)), line)
            case "MappingStartEvent" | "SequenceStartEvent":
                if event.flow_style:
                    self._quirks.append(
                        Malformed(line, "Lists and mappings in brackets are not allowed: one per line.")
                    )
                if len(self._stack) == _DEEPEST:
                    raise Malformed(line, f"The frontmatter is nested more than {_DEEPEST} deep.")
                value: dict[str, Field] | list[Field] = {} if kind == "MappingStartEvent" else []
                self._put(value, line)
                self._stack.append(_Open(value))
            case "MappingEndEvent" | "SequenceEndEvent":
                self._stack.pop()
            case "DocumentStartEvent" if self._top is not None:
                raise Malformed(line, "The frontmatter has more than one document.")
            case _:
                pass

    def _put(self, value: Field, line: int) -> None:
        if not self._stack:
            self._top = value
            return
        parent = self._stack[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is None:
            if not isinstance(value, str):
                raise Malformed(line, "The name of a field is not text.")
            if value in parent.value:
                self._quirks.append(Malformed(line, f"`{value}` is there twice."))
            if len(self._stack) == 1:
                self._lines[value] = line
            parent.key = value
        else:
            parent.value[parent.key] = value
            parent.key = None
