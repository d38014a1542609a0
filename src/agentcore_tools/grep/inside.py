"""Searches files for lines, in a process of its own: a pattern that takes for ever can be ended there.

Not imported: `python.py` gives it to the workspace's Python, of whatever version from 3.6 on, which has nothing of ours; or to
the one that runs this, with what the files hold, where the workspace has none.
"""

import codecs
import json
import os
import re
import sys
from typing import Any, Iterator  # noqa: UP035 of an old Python

LONGEST = 4000
# The longer first: the mark of UTF-32 begins like that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def given(asked: "dict[str, Any]") -> "Iterator[tuple[bytes, bytes]]":
    """Give the files by name, with what they hold: read, or told behind each name."""
    if not asked["told"]:
        for name in sys.stdin.buffer.read().split(b"\0"):
            if not name:
                continue
            try:
                with open(name, "rb") as file:
                    data = file.read()
            except OSError:
                continue
            yield name, data
        return
    while True:
        head = sys.stdin.buffer.readline()
        if not head:
            return
        name, size = json.loads(head.decode("ascii"))
        yield os.fsencode(name), sys.stdin.buffer.read(size)


def text_of(data: bytes) -> "str | None":
    """Give a file's text; None of what is no text."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return with_line_feeds(data[len(mark) :].decode(encoding, "replace"))
    # Bytes that are no text become what no pattern matches.
    return None if b"\0" in data else with_line_feeds(data.decode("utf-8", "surrogateescape"))


def with_line_feeds(text: str) -> str:
    """End each line by a line feed alone: what else ends it is no part of it."""
    return text.replace("\r\n", "\n")


def shown(line: str) -> str:
    """Make text of what may hold bytes that are none."""
    return line[:LONGEST].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def matching(pattern: "re.Pattern[str]", text: str, first_only: bool) -> "Iterator[tuple[int, int, int]]":
    """Give the numbers of the lines that match, from 0, and where each begins and ends."""
    number = at = 0
    for match in pattern.finditer(text):
        if match.start() < at:
            continue  # another one in the same line
        if match.start() == len(text) and text.endswith("\n"):
            return  # behind the end of the last line there is none
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.start())
        end = len(text) if end < 0 else end
        number += text.count("\n", at, start)
        yield number, start, end
        if first_only:
            return
        at = end + 1
        number += 1


def search(
    asked: "dict[str, Any]", pattern: "re.Pattern[str]", data: bytes
) -> "tuple[int, list[tuple[int, str, bool]]]":
    """Give how many lines of a file match, and the lines."""
    text = text_of(data)
    if not text:
        return 0, []
    found: list[tuple[int, str]] = []
    count = 0
    for number, start, end in matching(pattern, text, asked["first_only"]):
        count += 1
        if asked["keep"]:
            found.append((number, shown(text[start : min(end, start + LONGEST)])))
            if count > asked["limit"]:
                break
    if not found or not asked["context"]:
        return count, [(number + 1, line, True) for number, line in found]
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    matched = {number for number, _ in found}
    around: set[int] = set()
    for number in matched:
        around.update(range(max(number - asked["context"], 0), min(number + asked["context"] + 1, len(lines))))
    return count, [(number + 1, shown(lines[number]), number in matched) for number in sorted(around)]


def main() -> None:
    """Read what is asked as a line of JSON, and then the files: names with a NUL behind each, or names with what they hold."""
    asked = json.loads(sys.stdin.buffer.readline().decode("utf-8"))
    flags = re.MULTILINE | (re.IGNORECASE if asked["ignore_case"] else 0)
    pattern = re.compile(asked["pattern"], flags)
    total = 0
    for name, data in given(asked):
        count, lines = search(asked, pattern, data)
        if not count:
            continue
        sys.stdout.write(json.dumps([os.fsdecode(name), count, lines]) + "\n")
        total += count if asked["keep"] else 1
        if total > asked["limit"]:
            return


if __name__ == "__main__":
    main()
