"""The sections of a system prompt: Markdown files whose headings are their names.

Above: `AgentContext`, which replaces, adds and leaves out sections by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from agentcore._text import markdown_lines

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "prompts")
_LARGEST: Final = 256 * 1024
_HEADING: Final = re.compile(r"# +(\S.*?)[ #]*")

FIRST_SECTION: Final = "role"
"""The name of the text that stands before the first heading of a file."""


def read_sections(markdown: str) -> dict[str, str]:
    """Return the sections of a Markdown file, in its order: the headings of the first level are their names, and not shown.

    Raises:
        ValueError: two sections have one name, or there is no text in it.
    """
    sections: dict[str, str] = {}
    name, lines = FIRST_SECTION, list[str]()

    def end_section() -> None:
        if text := "\n".join(lines).strip("\n"):
            if name in sections:
                raise ValueError(f"Two sections are called {name!r}: give each heading another name.")
            sections[name] = text

    for line, is_code in markdown_lines(markdown.removeprefix("\ufeff")):
        if not is_code and (heading := _HEADING.fullmatch(line)):
            end_section()
            name, lines = heading[1].lower(), []
        else:
            lines.append(line)
    end_section()
    if not sections:
        raise ValueError("There is no text in it.")
    return sections


def read_variant(path: str) -> dict[str, str]:
    """Return the sections of a file.

    Raises:
        OSError: it can't be read.
        ValueError: it is not UTF-8, too large, or not made of sections.
    """
    with open(path, "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"The prompt {path!r} is larger than {_LARGEST // 1024} KiB.")
    try:
        return read_sections(data.decode())
    except ValueError as error:
        raise ValueError(f"The prompt {path!r} can't be used: {error}") from error


def join_sections(sections: Mapping[str, str]) -> str:
    """Return the text of the sections, in their order."""
    return "\n\n".join(sections.values())


# Read when this is imported, for once: a context is often made where an event loop runs, which must not wait for a disk.
VARIANTS: Final[Mapping[str, Mapping[str, str]]] = {
    name: read_variant(os.path.join(_FOLDER, f"{name}.md"))
    for name in ("default", "claude", "gpt", "gemini", "small", "planning")
}
"""The prompts that agentcore brings, by name."""

DEFAULT_PROMPT: Final = join_sections(VARIANTS["default"])
"""The system prompt of an agent that has no other."""
