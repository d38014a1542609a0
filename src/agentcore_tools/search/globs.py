"""Globs of the tools: `*`, `?`, `[...]`, `**` over folders, and `{a,b}`, nested ones too."""

from __future__ import annotations

import re
from typing import Final, final

from agentcore._gitignore import part_regex
from agentcore.errors import ToolError

_MOST_CHOICES: Final = 1_000
_MOST_BRACES: Final = 50


@final
class Glob:
    """A glob. One without a slash is about names, in whatever folder; one with a slash about paths from where it starts."""

    def __init__(self, pattern: str) -> None:
        """Read a glob."""
        if not pattern.strip():
            raise ToolError("The glob is empty. '**' stands for all files.")
        self.pattern = pattern
        if pattern.count("{") > _MOST_BRACES:
            raise ToolError(f"{pattern!r} has too many braces.")
        anchored = pattern.removeprefix("./")
        choices = [choice.lstrip("/") for choice in _choices(anchored)]
        regexes = [_regex(choice if "/" in pattern else f"**/{choice}") for choice in choices]
        try:
            self._regex = re.compile("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL)
        except re.error as error:
            raise ToolError(f"{pattern!r} is not a glob: {error}.") from error
        self.names_hidden = any(part.startswith(".") for choice in choices for part in choice.split("/"))
        """True if the glob names hidden files."""

    def matches(self, path: str) -> bool:
        """Return True for a path that matches, relative to where the glob starts."""
        return self._regex.fullmatch(path) is not None


def _choices(pattern: str) -> list[str]:
    """Return one glob without braces for each combination of the choices in braces."""
    start = _unescaped(pattern, "{", 0)
    if start < 0:
        return [pattern]
    depth, end, cuts = 0, start, [start]
    while end < len(pattern):
        character = pattern[end]
        if character == "\\":
            end += 1
        elif character == "{":
            depth += 1
        elif character == "," and depth == 1:
            cuts.append(end)
        elif character == "}":
            depth -= 1
            if depth == 0:
                break
        end += 1
    if depth:
        raise ToolError(f"{pattern!r} is not a glob: a brace is not closed.")
    parts = [pattern[one + 1 : other] for one, other in zip(cuts, [*cuts[1:], end], strict=True)]
    rests = _choices(pattern[end + 1 :])
    found = [pattern[:start] + choice + rest for part in parts for choice in _choices(part) for rest in rests]
    if len(found) > _MOST_CHOICES:
        raise ToolError(f"{pattern!r} has too many combinations in its braces.")
    return found


def _unescaped(pattern: str, wanted: str, at: int) -> int:
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == wanted:
            return at
        at += 1
    return -1


def _regex(glob: str) -> str:
    named = [part for part in glob.split("/") if part not in {"", "."}]
    # One of several folders in a row is as good as all of them.
    parts = [part for part, before in zip(named, [None, *named], strict=False) if (part, before) != ("**", "**")]
    if glob.endswith("/"):
        parts.append("**")
    regex = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            regex += ".*" if last else "(?:.*/)?"
        else:
            regex += (part_regex(part, lenient=True) or "") + ("" if last else "/")
    return regex
