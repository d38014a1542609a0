"""Deltas for many watchers: one subscription, one encoding, and a short past that watchers read at their own pace.

A watcher that is behind the short past gets a gap. Nothing is kept for each watcher but a number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agentcore.conversation import StreamDelta
from agentcore.wire import DeltaFrame, Frame, Gap

PAST_BYTES = 256 * 1024
"""About what is kept of the deltas of a conversation that is watched."""

_BATCH_BYTES = 64 * 1024
"""A frame ends with the piece that reaches this."""


class _Batch(NamedTuple):
    begin: int
    frame: DeltaFrame
    size: int


class RecentDeltas:
    """The newest deltas of a conversation. A position is the number of pieces before it."""

    def __init__(self, room: int = PAST_BYTES) -> None:
        self._room = room
        self._size = 0
        self._end = 0
        self._batches: deque[_Batch] = deque()

    @property
    def end(self) -> int:
        """The position behind the newest piece."""
        return self._end

    def add(self, pieces: Sequence[StreamDelta]) -> None:
        """Add pieces; the oldest ones go where there is no room."""
        for items in _batched(join_pieces(pieces)):
            size = sum(_size_of(item) for item in items)
            self._batches.append(_Batch(self._end, DeltaFrame(items=tuple(items)), size))
            self._end += len(items)
            self._size += size
        # The newest batch stays, however large it is: somebody may be about to read it.
        while self._size > self._room and len(self._batches) > 1:
            self._size -= self._batches.popleft().size

    def since(self, position: int) -> list[Frame]:
        """Return the frames behind a position, a gap first where some are gone. A position is always the end of a batch."""
        batches = [batch for batch in self._batches if batch.begin >= position]
        frames: list[Frame] = [batch.frame for batch in batches]
        begin = batches[0].begin if batches else self._end
        return [Gap(lost=begin - position), *frames] if begin > position else frames

    def clear(self) -> None:
        """Forget the past: nobody watches."""
        self._batches.clear()
        self._size = 0


def join_pieces(pieces: Iterable[StreamDelta]) -> list[StreamDelta]:
    """Join the pieces that continue each other: a model sends a few letters at a time."""
    joined: list[StreamDelta] = []
    texts: list[str] = []
    end = 0
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and _continues(last, piece) and piece.offset == end:
            texts.append(piece.text)
        else:
            _put_text(joined, texts)
            joined.append(piece)
            texts = [piece.text]
            end = piece.offset
        end += len(piece.text)
    _put_text(joined, texts)
    return joined


def _continues(last: StreamDelta, piece: StreamDelta) -> bool:
    return (
        piece.type == last.type
        and piece.type not in ("reset", "gap")
        and piece.reply_id == last.reply_id
        and piece.attempt == last.attempt
        and piece.action_id == last.action_id
        # A call of a tool begins with its name; each piece of progress has it.
        and (piece.tool_name == last.tool_name if piece.type == "progress" else piece.tool_name is None)
    )


def _put_text(joined: list[StreamDelta], texts: list[str]) -> None:
    if len(texts) > 1:
        joined[-1] = joined[-1].model_copy(update={"text": "".join(texts)})


def _batched(pieces: Iterable[StreamDelta]) -> Iterable[list[StreamDelta]]:
    batch: list[StreamDelta] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += _size_of(piece)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size_of(piece: StreamDelta) -> int:
    return len(piece.text) + 200
