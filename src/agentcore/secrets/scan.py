"""Finding written forms in a text, all at once, and putting masks in their place.

Every occurrence counts, those that overlap too: they are masked as one stretch, named after the longest form that
begins it. So no end of a value stays readable because another one was replaced first, and what is masked does not
depend on the pieces in which a text arrives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, final

from agentcore.secrets.forms import SHORTEST

_HEAD = SHORTEST
"""How many characters a form is looked up by."""


class Mask(NamedTuple):
    """The mask of a form."""

    name: str
    lost: str
    """The same, where a value is to be put back one day and this can't be: what stood here was more, or encoded."""
    exact: bool
    """True if the form is the value itself."""


class Span(NamedTuple):
    """A stretch of a text that is to be masked."""

    start: int
    end: int
    form: str
    """The longest form that begins the stretch; a stretch that is longer than it holds others that overlap."""


@final
class Scanner:
    """The forms of all known values, ready to be looked for."""

    __slots__ = ("_beginnings", "_by_head", "_longest", "_shortest", "masks")

    def __init__(self, masks: Mapping[str, Mask]) -> None:
        self.masks: Final[Mapping[str, Mask]] = dict(masks)
        """The masks by form; none where there is nothing to look for."""
        self._longest = max(map(len, masks), default=0)
        self._shortest = min(map(len, masks), default=0)
        self._beginnings = frozenset(form[:size] for form in masks for size in range(1, _HEAD))
        self._by_head: dict[str, list[str]] = {}
        for form in self.masks:
            self._by_head.setdefault(form[:_HEAD], []).append(form)

    def replace(self, text: str) -> str:
        """Put masks in the place of all forms; the same object comes back when there is none."""
        spans = self.spans(text)
        return _replaced(text, spans, [self.mask_of(span) for span in spans]) if spans else text

    def replace_restorably(self, text: str, typed_masks: Collection[str] = ()) -> str:
        """Do the same, with another mask where the value alone would not bring back what was there.

        Masks that stood there before, `typed_masks`, are used for nothing else.
        """
        spans = self.spans(text)
        return _replaced(text, spans, [self._restorable(span, typed_masks) for span in spans]) if spans else text

    def mask_of(self, span: Span) -> str:
        """Return the mask that stands in the place of a stretch."""
        return self.masks[span.form].name

    def spans(self, text: str) -> list[Span]:
        """Return the stretches to be masked, in order; they do not overlap."""
        size = len(text)
        if not self.masks or size < self._shortest:
            return []
        # Two ways to one answer. A search for a form runs at the memory's speed, but there is one search per form;
        # going through the text by the forms' heads costs the same for any number of them. In nanoseconds, about:
        if len(self.masks) * (100 + size * 3 // 10) < 130 * size:
            found = self._search_form_by_form(text)
        else:
            found = self._search_by_heads(text)
        return _merged(found) if found else found

    def undecided_from(self, text: str) -> int:
        """Return the index from which the text may be the beginning of a form that goes on in what follows it."""
        size = len(text)
        for start in range(max(0, size - self._longest + 1), size):
            head = text[start : start + _HEAD]
            if len(head) < _HEAD:
                if head in self._beginnings:
                    return start
            elif forms := self._by_head.get(head):
                rest = text[start:]
                if any(len(form) > len(rest) and form.startswith(rest) for form in forms):
                    return start
        return size

    def last_cut(self, text: str) -> int:
        """Return the last index at which the text can be cut so that both parts can be masked without the other."""
        until = self.undecided_from(text)
        if until == len(text):
            return until
        # A form that overlaps with the beginning of another is masked together with it. But a row of the same characters
        # without an end is cut somewhere.
        start = max(0, until - 2 * self._longest)
        near = self.spans(text[start:])
        return next((start + span.start for span in near if span.start < until - start < span.end), until)

    def _restorable(self, span: Span, typed_masks: Collection[str]) -> str:
        mask = self.masks[span.form]
        alone = span.end - span.start == len(span.form)
        text = mask.name if mask.exact and alone else mask.lost
        while text in typed_masks and not (alone and text == span.form):
            text = f"{text[:-1]}:encoded>"
        return text

    def _search_form_by_form(self, text: str) -> list[Span]:
        found: list[Span] = []
        for form in self.masks:
            size = len(form)
            start = text.find(form)
            while start != -1:
                end = start + size
                following = text.find(form, start + 1)
                # A form may overlap itself, as "aaaaaa" in a long row of them: one stretch, however long that goes on.
                while -1 < following < end:
                    end = following + size
                    following = text.find(form, following + 1)
                found.append(Span(start, end, form))
                start = following
        return found

    def _search_by_heads(self, text: str) -> list[Span]:
        found: dict[str, list[Span]] = {}
        by_head = self._by_head
        for start in range(len(text) - _HEAD + 1):
            for form in by_head.get(text[start : start + _HEAD], ()):
                if text.startswith(form, start):
                    spans = found.setdefault(form, [])
                    begun = spans.pop().start if spans and start < spans[-1].end else start
                    spans.append(Span(begun, start + len(form), form))
        return [span for spans in found.values() for span in spans]


def _replaced(text: str, spans: list[Span], masks: list[str]) -> str:
    pieces: list[str] = []
    at = 0
    for span, mask in zip(spans, masks, strict=True):
        pieces += (text[at : span.start], mask)
        at = span.end
    pieces.append(text[at:])
    masked = "".join(pieces)
    return text if masked == text else masked


def _merged(found: list[Span]) -> list[Span]:
    found.sort(key=lambda span: (span.start, -len(span.form)))
    merged = [found[0]]
    for span in found:
        last = merged[-1]
        if span.start >= last.end:
            merged.append(span)
        elif span.end > last.end:
            merged[-1] = Span(last.start, span.end, last.form)
    return merged
