"""Thinking that a model writes into its words, in front of them: `<think>...</think>`.

Open models do, where nobody between here and there takes it out; the words of a message then begin with the mark.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["ThinkTags", "split_thinking"]

_OPEN, _CLOSE = "<think>", "</think>"


def split_thinking(text: str) -> tuple[str, str]:
    """Give what was thought and what was said."""
    thought: list[str] = []
    said: list[str] = []
    tags = ThinkTags()
    for is_thought, words in (*tags.feed(text), *tags.finish()):
        (thought if is_thought else said).append(words)
    return "".join(thought), "".join(said)


class ThinkTags:
    """Tells the one from the other in words that come in pieces."""

    def __init__(self) -> None:
        self._held = ""
        """What may be the beginning of a mark."""
        self._mark: str | None = _OPEN
        """The mark that comes next; None where none can come any more."""

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """Take words in, and give those of which it is known whether they are thought."""
        text = self._held + text
        self._held = ""
        if self._mark == _OPEN:
            begun = text.lstrip()
            if len(begun) < len(_OPEN) and _OPEN.startswith(begun):
                self._held = text
                return
            self._mark = _CLOSE if begun.startswith(_OPEN) else None
            if self._mark is not None:
                text = begun[len(_OPEN) :]
        if self._mark == _CLOSE:
            thought, found, rest = text.partition(_CLOSE)
            if not found:
                keep = _ends_with_beginning_of(_CLOSE, text)
                thought, self._held = text[: len(text) - keep], text[len(text) - keep :]
            if thought:
                yield True, thought
            if not found:
                return
            self._mark, text = None, rest
        if text:
            yield False, text

    def finish(self) -> Iterator[tuple[bool, str]]:
        """Give what was held back, when nothing more comes."""
        held, self._held = self._held, ""
        if held:
            yield self._mark == _CLOSE, held


def _ends_with_beginning_of(mark: str, text: str) -> int:
    return next((size for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size])), 0)
