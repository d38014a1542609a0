"""The globs of `.gitignore` files.

A `.gitignore` is checked for each entry by itself: a walk does not enter an excluded folder. So a folder that is left out can
still be searched by who names it, as with git and ripgrep; a folder that is taken back in takes nothing in it along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

Decide: TypeAlias = Callable[[str], bool | None]

# A backslash keeps a space at the end from being taken off.
_SPACES_AT_END: Final = re.compile(r"(?<!\\) +$")
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\t ",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Rules(NamedTuple):
    """The rules of one `.gitignore`."""

    base: str
    """Its folder, relative to where the walk starts, with a slash behind it unless that is where it starts."""
    above: str
    """For a `.gitignore` above of that: the way from its folder to there, with a slash behind it."""
    decide: Decide
    """True for what it leaves out, False for what it takes back in, None for what it says nothing of."""


class _Rule(NamedTuple):
    regex: re.Pattern[str]
    leaves_out: bool
    folders_only: bool


def read_rules(text: str, base: str = "", above: str = "") -> Rules:
    """Read a `.gitignore`."""
    read = [rule for line in text.removeprefix("\ufeff").split("\n") if (rule := _rule(line.removesuffix("\r")))]
    # The last one that speaks of something decides.
    rules = read[::-1]
    some = re.compile("|".join(f"(?:{rule.regex.pattern})" for rule in rules), re.DOTALL)

    def decide(path: str) -> bool | None:
        path, is_folder = path.removesuffix("/"), path.endswith("/")
        if not rules or some.fullmatch(path) is None:
            return None
        for rule in rules:
            if (is_folder or not rule.folders_only) and rule.regex.fullmatch(path) is not None:
                return rule.leaves_out
        return None

    return Rules(base, above, decide)


def is_ignored(path: str, rules: Sequence[Rules]) -> bool:
    """Return True for an excluded entry. A folder's path ends in a slash. The nearest file with a rule for the entry decides."""
    for each in reversed(rules):
        decided = each.decide(each.above + path[len(each.base) :])
        if decided is not None:
            return decided
    return False


def _rule(line: str) -> _Rule | None:
    """Read a line; None for a line without a rule, or one that cannot be read."""
    line = _SPACES_AT_END.sub("", line)
    if not line or line.startswith("#"):
        return None
    leaves_out = not line.startswith("!")
    glob = line.removeprefix("!")
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    if not glob:
        return None
    # One without a slash is about names, in whatever folder.
    parts = re.sub(r"(?:\*\*/){2,}", "**/", glob.removeprefix("/")).split("/") if "/" in glob else ["**", glob]
    regex = _across_folders(parts)
    if regex is None:
        return None
    try:
        return _Rule(re.compile(regex, re.DOTALL), leaves_out, folders_only)
    except re.error:
        return None  # git finds nothing by it, either


def _across_folders(parts: Sequence[str]) -> str | None:
    """Return a regular expression for a path; None where a part cannot be read.

    What stands between two `**` spans so many folders. The nearest place for it is as good as any other, so that none is
    looked for again: else a path would be read once for each combination of places.
    """
    regex, chunk, floating = "", "", False
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**" and (not last or number):
            regex += f"(?>(?:[^/]*/)*?{chunk})" if floating and chunk else chunk
            chunk, floating = "", True
            if last:
                return f"{regex}.+"
        else:
            read = part_regex(part, lenient=False)
            if read is None:
                return None
            chunk += read + ("" if last else "/")
    return f"{regex}(?:.*/)?{chunk}" if floating else regex + chunk


def part_regex(part: str, *, lenient: bool) -> str | None:
    """Return a regular expression for the name of a file or folder; None for one that git cannot read, unless lenient."""
    pieces: list[str] = []
    regex, at = "", 0
    while at < len(part):
        character = part[at]
        at += 1
        if character == "*":
            pieces.append(regex)
            regex = ""
        elif character == "?":
            regex += "[^/]"
        elif character == "[" and (found := _class(part, at)) is not None:
            inside, at = found
            regex += inside
        elif character == "\\" and at < len(part):
            regex += re.escape(part[at])
            at += 1
        elif character in "[\\" and not lenient:
            return None
        else:
            regex += re.escape(character)
    return _with_stars([*pieces, regex])


def _with_stars(pieces: Sequence[str]) -> str:
    """Put a star between regular expressions for parts of a name, so that a name is read once however many stars there are.

    The nearest place for each piece is as good as any other, so that none is looked for again; but the last is at the end.
    """
    first, *others = pieces
    if not others:
        return first
    return first + "".join(f"(?>[^/]*?{piece})" for piece in others[:-1] if piece) + f"[^/]*{others[-1]}"


def _class(part: str, at: int) -> tuple[str, int] | None:
    """Read what stands behind a bracket; give it, and where it ends."""
    negated = part[at : at + 1] in {"!", "^"}
    at += negated
    items, first = "", True
    while at < len(part):
        character = part[at]
        at += 1
        if character == "]" and not first:
            return f"(?!/)[{'^' if negated else ''}{items}]", at
        first = False
        if character == "[" and (named := re.compile(r":(\w+):\]").match(part, at)) is not None:
            if named[1] not in _CLASSES:
                return None
            items += _CLASSES[named[1]]
            at = named.end()
        elif character == "\\" and at < len(part):
            items += re.escape(part[at])
            at += 1
        else:
            # Two in a row would mean something else to `re` one day.
            items += "-" if character == "-" and not items.endswith("-") else re.escape(character)
    return None
