"""Long output, made short enough for a model to read."""

from __future__ import annotations

from typing import Final

__all__ = ["OUTPUT_LIMIT", "cut"]

OUTPUT_LIMIT: Final = 30_000
"""How many characters of a tool's output a model is shown, unless told otherwise."""

# How far the cut may move to fall between two lines.
_SNAP = 200


def cut(text: str, limit: int = OUTPUT_LIMIT, full_output_path: str | None = None) -> str:
    """Keep the beginning and the end of a text that is longer than the limit, the notice between them included.

    `full_output_path` is the path under which the model can read the whole.
    """
    if len(text) <= limit:
        return text
    # The notice is longest where everything is left out; room for it is taken first.
    room = max(limit - len(_notice(text, full_output_path)), 0)
    head = _to_line_end(text[: room - room // 2])
    tail = _from_line_start(text[len(text) - room // 2 :])
    left_out = text[len(head) : len(text) - len(tail)]
    return head + _notice(left_out, full_output_path) + tail


def _notice(left_out: str, full_output_path: str | None) -> str:
    lines = left_out.count("\n")
    where = f" The whole is in {full_output_path}" if full_output_path is not None else " It was not kept"
    return f"\n[{len(left_out):,} characters ({lines:,} line ends) are left out here.{where}]\n"


def _to_line_end(head: str) -> str:
    end = head.rfind("\n", max(len(head) - _SNAP, 0))
    return head[:end] if end > 0 else head


def _from_line_start(tail: str) -> str:
    start = tail.find("\n", 0, _SNAP)
    return tail[start + 1 :] if start >= 0 else tail
