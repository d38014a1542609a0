"""What the terminal shows of what was typed, where a program turned that on and left it on: taken out of the output."""

from __future__ import annotations

from typing import Final, final

from agentcore_tools.terminal.fence import beginning_at_end

__all__ = ["Echo"]

# How a terminal shows the end of a line, by the state it is in.
_LINE_ENDS: Final = (b"\r\n", b"\n", b"^J")


@final
class Echo:
    """Removes one typed text from a stream, wherever it begins."""

    def __init__(self, typed: bytes) -> None:
        """Look for lines that end in line feeds; the first has to be one that stands nowhere else."""
        self._lines = typed.removesuffix(b"\n").split(b"\n")[::-1]
        self._held = b""
        self.found = False

    def feed(self, data: bytes) -> bytes:
        """Take the next piece and give it without the echo."""
        if not self._lines:
            return data
        data, self._held = self._held + data, b""
        before = b""
        if not self.found:
            first = self._lines[-1]
            at = data.find(first)
            if at < 0:
                at = beginning_at_end(data, first)
                self._held = data[at:]
                return data[:at]
            self.found = True
            before, data = data[:at], data[at:]
        while self._lines:
            line = self._lines[-1]
            if not data.startswith(line):
                break
            rest = data[len(line) :]
            end = next((end for end in _LINE_ENDS if rest.startswith(end)), None)
            if end is None:
                break
            data = rest[len(end) :]
            self._lines.pop()
        if self._lines and _may_become(data, self._lines[-1]):
            self._held = data
            return before
        # All is removed, or something else was written in between: then what is left of it can't be told from that.
        self._lines.clear()
        return before + data


def _may_become(data: bytes, line: bytes) -> bool:
    return any((line + end).startswith(data) for end in _LINE_ENDS)
