"""The one piece of Markdown that is made and read here: code spans, for what is not Markdown itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["code_span", "split_code_spans"]

_RUN = re.compile("`+")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def code_span(text: str) -> str:
    """Return the text as a code span, whatever backticks it has in it."""
    fence = "`" * (max(map(len, _RUN.findall(text)), default=0) + 1)
    # A space inside is needed beside a backtick, and readers strip one from each side where both sides have one.
    space = " " if not text or "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    return f"{fence}{space}{text}{space}{fence}"


def split_code_spans(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of one line of Markdown, in order, each with whether it is what a code span holds."""
    end = 0
    for span in _SPAN.finditer(markdown):
        if span.start() > end:
            yield markdown[end : span.start()], False
        inner = span[2]
        if len(inner) > 1 and inner[0] == inner[-1] == " ":
            inner = inner[1:-1]
        yield inner, True
        end = span.end()
    if end < len(markdown):
        yield markdown[end:], False
