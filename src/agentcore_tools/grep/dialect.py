"""The regular expressions of ripgrep, said as Python's `re` says them, for places without ripgrep.

They are matched line by line, so nothing in them matches the end of a line, nor what stands for a byte that is no text. What
ripgrep refuses is refused here, too.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, final

from agentcore.errors import ToolError

_COUNTED: Final = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\x0b\x0c\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
# What no pattern matches: what ends a line, and bytes that are no text (as `inside.py` reads them).
_NEVER: Final = r"\n\r\ud800-\udfff"
_SPACE: Final = r"\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_CLASSES: Final = {
    "d": r"\d",
    "w": r"\w",
    "s": f"[{_SPACE}]",
    "D": rf"[^\d{_NEVER}]",
    "W": rf"[^\w{_NEVER}]",
    "S": f"[^{_SPACE}{_NEVER}]",
}
# The same inside of a class. What counts as space in Python alone is none.
_IN_CLASSES: Final = {"d": r"\d", "w": r"\w", "s": _SPACE, "D": r"\D", "W": r"\W", "S": r"\S\x1c-\x1f"}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_ASSERTIONS: Final = {"b": r"\b", "B": r"\B", "<": r"\b(?=\w)", ">": r"\b(?<=\w)"}
_NAMED: Final = re.compile(r"\\(?:[xuUpP]\{[^}]*\}|b\{(?:start|end)(?:-half)?\})")
_LINE_ENDS: Final = {r"\A": "^", r"\z": "$"}
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_GENERAL: Final = {
    "letter": "L",
    "mark": "M",
    "number": "N",
    "punctuation": "P",
    "symbol": "S",
    "separator": "Z",
    "other": "C",
}
_LINE_END: Final = "the end of a line can't be matched: lines are searched one by one"


def as_meant(pattern: str) -> str:
    r"""Mend what ripgrep refuses or never finds, though there is no doubt what was meant.

    That is a brace that can't be a count, as in `func main() {`, and `\A` and `\z`: the ends of the text, of which each line is one.
    """
    mended, at, in_class = "", 0, False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            end = at + 2
            if (named := _NAMED.match(pattern, at)) is not None:
                end = named.end()
            mended += _LINE_ENDS.get(pattern[at:end], pattern[at:end])
            at = end
            continue
        if character == "[" and not in_class:
            in_class = True
        elif character == "]":
            in_class = False
        elif character == "{" and not in_class:
            counted = _COUNTED.match(pattern, at)
            if counted is None or not (counted[1] or counted[3]) or not mended or mended[-1] in "(|":
                mended += "\\{"
            else:
                # Older versions have no way to leave the lower bound out.
                mended += f"{{{counted[1] or '0'}{counted[2]}{counted[3]}}}"
                at = counted.end()
                continue
            at += 1
            continue
        mended += character
        at += 1
    return mended


def in_python(pattern: str) -> str:
    """Say a pattern of ripgrep's as one for `re` with MULTILINE, searched in a whole text.

    Raises:
        ToolError: it is wrong, or needs what only ripgrep has.
    """
    return _Translation(pattern).whole()


@final
class _Translation:
    """Reads a pattern from left to right and keeps what it says, an atom with its repetition in one piece."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        self._groups: list[tuple[int, list[str]]] = []
        """Of each group that is open: where it began, and the flags that were set in the one around it."""
        self._flags: list[str] = []
        """Flags that were set in this group, each with a group of its own up to the next `|` or the end."""
        self._repeated = False
        """Whether the last atom has a repetition."""
        self._assertion = False
        """Whether the last atom is a place and no character."""
        self._fresh = True
        """Whether there is no atom yet, in this group or since the last `|`."""

    def whole(self) -> str:
        while self._at < len(self._pattern):
            self._next()
        if self._groups:
            raise self._wrong("a group is not closed")
        self._close_flags()
        translated = "".join(self._out)
        try:
            re.compile(translated, re.MULTILINE)
        except (re.error, OverflowError) as error:
            raise self._wrong(str(error)) from error
        return translated

    def _next(self) -> None:
        character = self._take()
        match character:
            case "\\":
                place = self._pattern[self._at : self._at + 1] in _ASSERTIONS
                self._add(self._escape())
                self._assertion = place
            case "[":
                self._add(self._class())
            case "(":
                self._open()
            case ")":
                self._close()
            case "|":
                self._close_flags()
                self._out.append("|" + "".join(f"(?{flag}:" for flag in self._flags))
                self._fresh = True
            case "*" | "+" | "?":
                self._repeat(character)
            case "{":
                counted = _COUNTED.match(self._pattern, self._at - 1)
                if counted is None:
                    self._add(r"\{")
                else:
                    self._at = counted.end()
                    self._repeat(f"{{{counted[1]}{counted[2]}{counted[3]}}}")
            case "$" | "^":
                self._add(character)
                self._assertion = True
            case ".":
                self._add(f"[^{_NEVER}]")
            case "\n" | "\r":
                raise self._wrong(_LINE_END)
            case _:
                self._add(re.escape(character))

    def _take(self) -> str:
        if self._at >= len(self._pattern):
            raise self._wrong("it ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _starts(self, text: str) -> bool:
        if self._pattern.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _add(self, atom: str) -> None:
        self._out.append(atom)
        self._repeated = self._fresh = self._assertion = False

    def _repeat(self, how: str) -> None:
        if self._fresh:
            raise self._wrong(f"there is nothing for {how!r} to repeat")
        if self._repeated:
            # `re` would read the second one as something else.
            self._out[-1] = f"(?:{self._out[-1]})"
        elif self._assertion:
            # `re` repeats none.
            self._out[-1] = f"(?:{self._out[-1]}(?:))"
        self._out[-1] += how + ("?" if self._starts("?") else "")
        self._repeated = True

    def _open(self) -> None:
        begin = "("
        if self._starts("?"):
            if named := re.compile(r"P?<([A-Za-z_]\w*)>").match(self._pattern, self._at):
                self._at = named.end()
                begin = f"(?P<{named[1]}>"
            elif self._pattern[self._at : self._at + 1] in {"=", "!", "<"}:
                raise self._wrong("looking around, as by (?=...), is not supported")
            else:
                flags = re.compile(r"([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])").match(self._pattern, self._at)
                if flags is None:
                    raise self._wrong("what stands behind '(?' is not supported")
                self._at = flags.end()
                flag = self._flag(flags[1], flags[2] or "")
                if flags[3] == ")":
                    if flag:
                        self._flags.append(flag)
                        self._out.append(f"(?{flag}:")
                    self._fresh = True
                    return
                begin = f"(?{flag}:"
        self._groups.append((len(self._out), self._flags))
        self._flags = []
        self._out.append(begin)
        self._fresh = True

    def _flag(self, on: str, off: str) -> str:
        if unknown := set(on + off) - set("imsuR"):
            raise self._wrong(f"the flag {min(unknown)!r} is not supported without ripgrep")
        # Of the others none matters where lines are searched one by one.
        return "i" if "i" in on else "-i" if "i" in off else ""

    def _close(self) -> None:
        if not self._groups:
            raise self._wrong("a group is closed that was not opened")
        self._close_flags()
        start, self._flags = self._groups.pop()
        self._out[start:] = ["".join([*self._out[start:], ")"])]
        self._repeated = self._fresh = False

    def _close_flags(self) -> None:
        if self._flags:
            self._out.append(")" * len(self._flags))

    def _escape(self) -> str:
        letter = self._take()
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter in _ASSERTIONS:
            return _ASSERTIONS[letter]
        if letter in "pP":
            return _within_a_line(self._category(letter == "P"))
        character = self._character(letter)
        if character in "\n\r":
            raise self._wrong(_LINE_END)
        return re.escape(character)

    def _character(self, letter: str) -> str:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in _HEX:
            length = _HEX[letter]
            found = re.compile(rf"\{{([0-9a-fA-F]+)\}}|([0-9a-fA-F]{{{length}}})").match(self._pattern, self._at)
            if found is None:
                raise self._wrong(f"behind '\\{letter}' comes a number in hexadecimal")
            self._at = found.end()
            try:
                return chr(int(found[1] or found[2], 16))
            except (ValueError, OverflowError):
                raise self._wrong("there is no such character") from None
        if letter.isdigit():
            raise self._wrong("backreferences, as by '\\1', are not supported")
        if letter.isalnum():
            raise self._wrong(f"'\\{letter}' means nothing")
        return letter

    def _class(self) -> str:
        negated = self._starts("^")
        items = ""
        first = True
        while first or not self._starts("]"):
            first = False
            character = self._take()
            if character == "[":
                items += self._posix()
            elif character == "\\":
                letter = self._take()
                if letter in _IN_CLASSES:
                    items += _IN_CLASSES[letter]
                elif letter in "pP":
                    items += self._category(letter == "P")
                elif letter == "b":
                    raise self._wrong("'\\b' means nothing in a class")
                else:
                    items += _in_class(self._character(letter))
            elif character in "&-~" and self._starts(character):
                raise self._wrong(f"{character * 2!r} in a class is not supported without ripgrep")
            else:
                items += "-" if character == "-" else _in_class(character)
        if negated:
            return f"[^{items}{_NEVER}]"
        try:
            return _within_a_line(items)
        except re.error as error:
            raise self._wrong(str(error)) from error

    def _posix(self) -> str:
        found = re.compile(r":(\^?)(\w+):\]").match(self._pattern, self._at)
        if found is None:
            raise self._wrong("a class in a class is not supported without ripgrep; a literal '[' is written '\\['")
        if found[1] or found[2] not in _POSIX:
            raise self._wrong(f"'[{found[0]}' is not supported without ripgrep")
        self._at = found.end()
        return _POSIX[found[2]]

    def _category(self, negated: bool) -> str:
        found = re.compile(r"\{(\^?)([\w =:]+)\}|([A-Z])").match(self._pattern, self._at)
        if found is None:
            raise self._wrong("behind '\\p' comes the name of a category")
        self._at = found.end()
        name = found[3] or found[2]
        ranges = _ranges(_GENERAL.get(name.lower(), name), negated != bool(found[1]))
        if not ranges:
            raise self._wrong(f"the category {name!r} is not supported without ripgrep")
        return ranges

    def _wrong(self, why: str) -> ToolError:
        return ToolError(f"The pattern {self._pattern!r} can't be used: {why} (at character {self._at}).")


def _within_a_line(items: str) -> str:
    """Make a class of what stands in one, which matches nothing that no pattern matches."""
    spans = any(map(re.compile(f"[{items}]").match, "\n\r\ud800\udfff"))
    return f"(?:(?![{_NEVER}])[{items}])" if spans else f"[{items}]"


def _in_class(character: str) -> str:
    return f"\\{character}" if character in "\\]^-[&~|" else character


@lru_cache(maxsize=32)
def _ranges(category: str, negated: bool) -> str:
    """Give the characters of a general category as what stands in a class."""
    ranges: list[str] = []
    start = -1
    some = False
    for code in range(0x110001):
        inside = False
        if code < 0x110000:
            of_it = unicodedata.category(chr(code)).startswith(category)
            some = some or of_it
            inside = of_it != negated
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = -1
    return "".join(ranges) if some else ""
