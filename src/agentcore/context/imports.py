"""The imports of a CLAUDE.md: `@path`, as a word of its own outside of code."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from agentcore._text import markdown_lines

_IMPORT: Final = re.compile(r"(?:^|(?<=\s))@([^\s@]+)")
_CODE: Final = re.compile(r"`[^`]*`")
_BEHIND: Final = ".,;:!?)]}\"'*_"
_LONGEST: Final = 1_000
_SUFFIXES: Final = (".md", ".mdc", ".markdown", ".txt", ".rst")


def imports_in(text: str) -> Iterator[str]:
    """Return the paths that a text imports, as they are written, each once."""
    known: set[str] = set()
    for line, is_code in markdown_lines(text):
        if is_code or "@" not in line:
            continue
        for found in _IMPORT.finditer(_CODE.sub("", line)):
            path = found[1].rstrip(_BEHIND)
            if path and len(path) <= _LONGEST and "\0" not in path and path not in known:
                known.add(path)
                yield path


def import_target(path: str, importer: str) -> str | None:
    """Return the absolute path of an import, or None for one in a home folder."""
    if path.startswith("~"):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))


def is_meant_as_path(path: str) -> bool:
    """Return whether the word can only be a path: `@alice` and `@types/node` are other things where there is no such file."""
    return path.startswith(("/", "./", "../", "~")) or path.lower().endswith(_SUFFIXES)
