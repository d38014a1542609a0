"""Masking a text that arrives in pieces, so that a value which is cut in two by their boundary is found all the same."""

from __future__ import annotations

from typing import final

from agentcore.secrets.scan import Scanner

__all__ = ["ByteStreamMasker", "StreamMasker"]


@final
class StreamMasker:
    """Takes pieces and gives them back masked, later by just what might be the beginning of a secret.

    All that it gives out, put together, is what masking the whole text at once would give. Made by
    `Masker.stream()`; each is for one text.
    """

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._held = ""
        # How much of what is held belongs to a stretch whose mask has been given out already.
        self._covered = 0

    def feed(self, piece: str) -> str:
        """Take the next piece and give what can be told by now; often that is the piece itself, or nothing."""
        if not self._scanner:
            return piece
        text = self._held + piece if self._held else piece
        return self._give_out(text, self._scanner.undecided_from(text))

    def finish(self) -> str:
        """Give what was held back: the text is complete."""
        return self._give_out(self._held, len(self._held))

    def _give_out(self, text: str, until: int) -> str:
        pieces: list[str] = []
        at = self._covered
        for span in self._scanner.spans(text):
            if span.start >= until:
                break
            if span.start >= at:
                pieces += (text[at : span.start], self._scanner.mask_of(span))
            at = max(at, span.end)
        pieces.append(text[at:until])
        self._held = text[until:]
        self._covered = max(0, at - until)
        return "".join(pieces)


@final
class ByteStreamMasker:
    """A `StreamMasker` for a program's output, made by `Masker.byte_stream()`."""

    def __init__(self, scanner: Scanner) -> None:
        """Take a scanner of forms in which each character stands for one byte of UTF-8."""
        self._text = StreamMasker(scanner)

    def feed(self, piece: bytes) -> bytes:
        """Take the next piece and give what can be told by now."""
        return self._text.feed(piece.decode("latin-1")).encode("latin-1")

    def finish(self) -> bytes:
        """Give what was held back: the output is complete."""
        return self._text.finish().encode("latin-1")
