"""Where a command's output ends: the shell's report, found in the stream of its terminal.

The report comes through the terminal, behind the last byte of output, and bears a number that was made for this one
command and that nothing but the shell was ever told. So no output can look like it, however it got there, and none is
taken for it; reports that are out of date, or made up, are sequences that nobody obeys. Before it comes a question, with the
same number: to type nothing more into the command, and to say so.
"""

from __future__ import annotations

import re
import secrets
from typing import Final, NamedTuple, final

__all__ = ["Fence", "Report", "beginning_at_end", "new_nonce"]

# The number that is chosen is a parameter of an operating system command that no terminal knows.
_BEGINNING: Final = "\x1b]7717;{};"
_REST: Final = re.compile(rb"(\d+)\x1f([^\x07\x1f]*)\x1f([^\x07\x1f]*)\x07(\r*)\n")
# A command can find out its own number, and print it. What comes behind that for so long, and is no report, is output.
_LONGEST_REST: Final = 65536


class Report(NamedTuple):
    """What the shell says when it is ready for another command."""

    exit_code: int
    cwd: str
    python: str
    """The path of the Python that a command would find; empty where there is none."""
    cooked: bool
    """Whether the terminal still ends lines as terminals do; if not, a program left it in another state."""


def new_nonce() -> int:
    """Make a number that can't be guessed, of the size that bash can count with."""
    return (1 << 62) | secrets.randbits(62)


@final
class Fence:
    """Looks for the report of one command at a time."""

    def __init__(self) -> None:
        self._mark: bytes | None = None
        self._question = b""
        self._held = b""
        self.nonce = 0
        """The number that is looked for, or was the last time."""
        self.asked = 0
        """How often the shell has asked, and was not answered yet; for who answers to set back."""

    def expect(self, nonce: int) -> None:
        """Look for the report with this number from now on."""
        self.nonce, self.asked = nonce, 0
        self._mark = _BEGINNING.format(nonce).encode()
        self._question = self._mark[:-1] + b"\x07"

    def feed(self, data: bytes) -> tuple[bytes, Report | None, bytes]:
        """Take the next piece; give the output before the report, the report if it is there, and what follows it."""
        if self._mark is None:
            return data, None, b""
        data, self._held = self._held + data, b""
        if self._question in data:
            self.asked += data.count(self._question)
            data = data.replace(self._question, b"")
        # What may be the beginning of a question may be that of a report, too.
        at = data.find(self._mark)
        if at < 0:
            at = beginning_at_end(data, self._mark)
            self._held = data[at:]
            return data[:at], None, b""
        while (rest := _REST.match(data, at + len(self._mark))) is None:
            later = data.find(self._mark, at + 1)
            if later < 0:
                if len(data) - at > _LONGEST_REST:
                    at = beginning_at_end(data, self._mark)
                self._held = data[at:]
                return data[:at], None, b""
            at = later
        self._mark = None
        code, cwd, python, cooked = rest.groups()
        report = Report(int(code), cwd.decode(errors="replace"), python.decode(errors="replace"), bool(cooked))
        return data[:at], report, data[rest.end() :]


def beginning_at_end(data: bytes, mark: bytes) -> int:
    """Say from where on the data may be the beginning of the mark; its length if it is not."""
    start = data.find(mark[:1], max(0, len(data) - len(mark) + 1))
    while start >= 0 and not mark.startswith(data[start:]):
        start = data.find(mark[:1], start + 1)
    return start if start >= 0 else len(data)
