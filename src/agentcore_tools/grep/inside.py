"""A program that searches files for lines. In a process of its own, a pattern that never comes to an end can be stopped.

It is not imported: `python.py` passes its source to the workspace's Python (3.6 or later, without our packages), or, together
with the contents of the files, to the Python that runs this.
"""

import codecs
import json
import os
import re
import sys
import warnings
from typing import Any, Iterator  # noqa: UP035 of an old Python

# The longer first: the mark of UTF-32 begins like that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_files(asked: "dict[str, Any]") -> "Iterator[tuple[bytes, bytes]]":
    """Return names and contents of the files: read from disk, or streamed after each name."""
    if not asked["streamed"]:
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


def decode_text(data: bytes) -> "str | None":
    """Return a file's text, or None if it is not text."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return with_line_feeds(data[len(mark) :].decode(encoding, "replace"))
    return None if b"\0" in data else with_line_feeds(data.decode("utf-8", "surrogateescape"))


def with_line_feeds(text: str) -> str:
    """Replace other line ends, so that they are not a part of the line."""
    return text.replace("\r\n", "\n")


def shown(line: str, longest: int) -> str:
    """Return text for a line that may contain invalid bytes."""
    return line[:longest].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def search(
    asked: "dict[str, Any]", pattern: "re.Pattern[str]", data: bytes
) -> "tuple[int, list[tuple[int, str, bool]]]":
    """Return the number of lines of a file that match, and the lines."""
    text = decode_text(data)
    if not text:
        return 0, []
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    matched: list[int] = []
    for number, line in enumerate(lines):
        if pattern.search(line):
            matched.append(number)
            if asked["first_only"] or (asked["keep"] and len(matched) > asked["limit"]):
                break
    if not asked["keep"]:
        return len(matched), []
    near: set[int] = set()
    for number in matched:
        near.update(range(max(number - asked["context"], 0), min(number + asked["context"] + 1, len(lines))))
    hits = set(matched)
    return len(matched), [
        (number + 1, shown(lines[number], asked["longest"]), number in hits) for number in sorted(near)
    ]


def compiled(asked: "dict[str, Any]") -> "re.Pattern[str]":
    """Compile the pattern; one that `re` refuses, or warns that it may read otherwise, ends the program."""
    warnings.simplefilter("error")
    try:
        return re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    except (re.error, Warning, OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        sys.exit(3)


def main() -> None:
    """Read the search as a line of JSON, then the files: names that end in NUL, or names with their contents."""
    asked = json.loads(sys.stdin.buffer.readline().decode("utf-8"))
    pattern = compiled(asked)
    total = 0
    for name, data in read_files(asked):
        count, lines = search(asked, pattern, data)
        if not count:
            continue
        sys.stdout.write(json.dumps([os.fsdecode(name), count, lines]) + "\n")
        total += count if asked["keep"] else 1
        if total > asked["limit"]:
            return


if __name__ == "__main__":
    try:
        main()
    finally:
        sys.stdin.buffer.read()  # the sender would fail if some of it was never read
