"""Text from tools, models, providers and files: cut to a length, made fit for UTF-8, and without invisible characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, cast

OUTPUT_LIMIT: Final = 30_000
"""How many characters of a tool's output a model is shown, unless the tool decides otherwise."""

Mask: TypeAlias = Callable[[str], str]
"""Replaces the secrets in a text."""

NOT_KEPT: Final = "They were not kept."
"""The sentence about a text of which the rest is nowhere."""

# How far the cut may move to fall between two lines.
_SNAP: Final = 200


def already_masked(text: str) -> str:
    """Return the text as it is: the `mask` for a text that was masked before, or that cannot hold a secret."""
    return text


def clip(text: str, limit: int = OUTPUT_LIMIT, *, mask: Mask, full_output_path: str | None = None) -> str:
    """Return the beginning and the end of a text that is longer than the limit, with a notice between them.

    Args:
        text: The text.
        limit: The most characters of the result, the notice included.
        mask: Replaces secrets. It comes before the cut: half of a secret could not be masked any more.
        full_output_path: The path under which the model can read all of it.
    """
    text = mask(text)
    if len(text) <= limit:
        return text
    where = f"Full output: {full_output_path}" if full_output_path is not None else NOT_KEPT
    return clip_ends(text, text, limit, characters=len(text), lines=text.count("\n"), where=where)


def clip_ends(head: str, tail: str, limit: int, *, characters: int, lines: int, where: str) -> str:
    """Return the beginning of `head` and the end of `tail`, both masked before, with a notice between them.

    Args:
        head: The text from its beginning on.
        tail: The text up to its end.
        limit: The most characters of the result, the notice included.
        characters: The length of the whole text.
        lines: The number of its line ends.
        where: A sentence about where the whole text is.
    """
    # The notice is longest where everything is omitted; room for it is taken first.
    room = max(limit - len(_notice(characters, lines, where)), 0)
    head = _to_line_end(head[: room - room // 2])
    tail = _from_line_start(tail[max(len(tail) - room // 2, 0) :])
    shown = head + tail
    return head + _notice(characters - len(shown), lines - shown.count("\n"), where) + tail


def replace_lone_surrogates(value: Any) -> Any:
    """Return a JSON value whose texts UTF-8 can encode: surrogate pairs are joined, lone halves become U+FFFD.

    JSON can write half a character by its escape, and models, which cut text anywhere, do so.
    """
    match value:
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return value
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {replace_lone_surrogates(key): replace_lone_surrogates(part) for key, part in items}
        case list():
            return [replace_lone_surrogates(part) for part in cast("list[Any]", value)]
        case _:
            return value


# What no reader of a file sees and a model reads all the same: controls (except tab and line ends), zero-width and bidi
# characters, fillers, tags, and variation selectors but those of emoji. Joiners stay where emoji and scripts need them, between
# two characters beyond ASCII.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]"
)


def remove_invisible(text: str) -> str:
    """Return the text without invisible characters, which can hide instructions from people."""
    return _INVISIBLE.sub("", text)


_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


def markdown_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Return each line of a Markdown text, and whether it belongs to a fenced block of code."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        yield line, bool(fence or mark)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]


def _notice(characters: int, lines: int, where: str) -> str:
    return f"\n[{characters:,} characters ({lines:,} line ends) omitted. {where}]\n"


def _to_line_end(head: str) -> str:
    end = head.rfind("\n", max(len(head) - _SNAP, 0))
    return head[:end] if end > 0 else head


def _from_line_start(tail: str) -> str:
    start = tail.find("\n", 0, _SNAP)
    return tail[start + 1 :] if start >= 0 else tail
