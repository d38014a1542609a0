"""Text for people: amounts in words, and text of models, tools and files made safe to print.

Safe text can neither move the cursor nor hide anything. Markup is harmless, because nothing here prints rich markup.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

from agentcore.usage import Usage


def count(number: int, what: str) -> str:
    """Format a number with its noun: "1 step", "2 steps"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def cost(usage: Usage) -> str:
    """Format the cost, or the part of it that is known."""
    if not usage.unpriced_requests:
        return _dollars(usage.known_cost)
    return f"over {_dollars(usage.known_cost)}" if usage.known_cost else "cost unknown"


def _dollars(amount: Decimal) -> str:
    if not amount:
        return "$0"
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.4f}" if amount >= Decimal("0.0001") else "under $0.0001"


def spent(usage: Usage) -> str:
    """Format tokens and cost."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    return f"{usage.input_tokens:,} tokens read{cached}, {usage.output_tokens:,} written, {cost(usage)}"


def duration(seconds: float) -> str:
    """Format a length of time: "0.4 s", "12 s", "3 min 5 s", "2 h 10 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def age(moment: datetime, now: datetime | None = None) -> str:
    """Format the time since a moment, in its largest unit."""
    seconds = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


# Control characters (except newline and tab), changes of text direction, invisible characters, line ends that a terminal
# ignores, and lone surrogates, which cannot be encoded. Joiners stay: emoji and scripts need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

_SEQUENCE = re.compile(
    r"""
    (?:\x1b\[ | \x9b) [0-?]* [ -/]* (?: [@-~] | $ )            # CSI: colours, cursor moves
    | (?:\x1b[\]PX^_] | [\x90\x98\x9d-\x9f]) .*? (?: \x07 | \x1b\\ | \x9c | $ )    # OSC, DCS ...: titles, links, clipboard
    | \x1b [ -/]* [0-~]                                        # what is left
    """,
    re.VERBOSE | re.DOTALL,
)

# Some progress bars return by column number.
_TO_THE_BEGINNING = re.compile(r"\x1b\[[01]?G")

_LONGEST_LINE = 16_384
_LONGEST_BAR = 2_048


def printable(text: str) -> str:
    r"""Return the text with invisible characters escaped, as in `\x1b`: a person who decides has to see all of it."""
    return _UNSEEN.sub(_escape, text)


def one_line(text: str) -> str:
    """Return printable text on one line, with newlines escaped too."""
    return printable(text).replace("\n", "\\n").replace("\t", " ")


def relative_path(path: str, root: str | None) -> str:
    """Return a path relative to the workspace's folder if it is inside it."""
    return path.removeprefix(f"{root}/") if root is not None else path


def strip_escapes(line: str) -> str:
    """Return a line of output as a terminal would end up showing it, without colours and cursor moves."""
    line = _SEQUENCE.sub("", line)
    if "\r" in line:
        # A progress bar overwrites itself: only its last text stays.
        line = next((piece for piece in reversed(line.split("\r")) if piece), "")
    return _UNSEEN.sub(_escape, line.replace("\x07", "").replace("\x08", ""))


class OutputLines:
    """Splits output that arrives in pieces into printable lines."""

    def __init__(self) -> None:
        self._rest = ""

    @property
    def unfinished(self) -> str:
        """The unfinished last line: a question, or a progress bar."""
        return strip_escapes(self._rest)

    def feed(self, piece: str) -> list[str]:
        """Return the lines that are complete now."""
        text = self._rest + piece
        if "\x1b[" in text:
            text = _TO_THE_BEGINNING.sub("\r", text)
        lines = text.split("\n")
        self._rest = lines.pop()
        if len(self._rest) > _LONGEST_BAR and "\r" in self._rest:
            # What a progress bar overwrote is gone; text that ends with a return may still stay.
            at = self._rest.rfind("\r", 0, -1) + 1
            self._rest = self._rest[at:]
        if len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest)
            self._rest = ""
        return [strip_escapes(line) for line in lines]

    def finish(self) -> list[str]:
        """Return the rest, which has no newline."""
        rest, self._rest = self._rest, ""
        return [strip_escapes(rest)] if rest else []


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
