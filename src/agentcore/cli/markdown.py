"""The agent's Markdown as lines for a terminal. Nothing of the text is hidden: HTML, images and references stay as they are written."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from agentcore.cli.text import printable

_CODE = "  "
"""The indentation of code."""
_CODE_THEME = "ansi_dark"
"""The terminal's own colours."""
_NOT_DRAWN = ["html_block", "html_inline", "autolink", "image", "reference"]
"""Syntax whose source would be hidden, or printed twice."""
_STYLES = Theme(
    {
        **{f"markdown.h{level}": "bold" for level in range(1, 7)},
        "markdown.code": "cyan",
        "markdown.block_quote": "dim",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.hr": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt().enable(["strikethrough", "table"]).disable(_NOT_DRAWN)


def split_blocks(text: str) -> tuple[str, str]:
    """Split Markdown that is still being written into the blocks that are complete and the rest."""
    # A line that has not ended may still turn out to begin another block.
    text, unfinished = text[: (end := text.rfind("\n") + 1)], text[end:]
    blocks = [token for token in _parser().parse(text) if not token.level and token.map is not None]
    if not blocks:
        return "", text + unfinished
    lines = [f"{line}\n" for line in text.split("\n")[:-1]]
    last = blocks[-1]
    assert last.map is not None
    ended = not lines[-1].strip() and last.map[1] < len(lines)
    # A list may continue after an empty line.
    cut = len(lines) if ended and not last.type.endswith("list_open") else last.map[0]
    return "".join(lines[:cut]), "".join(lines[cut:]) + unfinished


def render_markdown(console: Console, text: str) -> list[Text]:
    """Render Markdown as lines. Those of code have `no_wrap`, so that they can be copied."""
    lines: list[Text] = []
    for token in (tokens := _parser().parse(text)):
        for child in token.children or ():
            if child.type == "softbreak":  # a line that the agent ended stays one
                child.type = "hardbreak"
    start = 0
    for position, token in enumerate(tokens):
        if token.level or token.nesting > 0:
            continue
        block, start = tokens[start : position + 1], position + 1
        if lines:
            lines.append(Text())
        if token.type in ("fence", "code_block"):
            code = Syntax("", token.info.partition(" ")[0] or "text", theme=_CODE_THEME, background_color="default")
            drawn = code.highlight(token.content)
            drawn.rstrip()
            lines += [Text(_CODE, no_wrap=True).append_text(line) for line in drawn.split("\n")]
        else:
            lines += _render_block(console, block)
    return lines


def _render_block(console: Console, tokens: list[Any]) -> list[Text]:
    markdown = _Markdown("", code_theme=_CODE_THEME, hyperlinks=False)
    markdown.parsed = tokens
    with console.use_theme(_STYLES):
        rows = console.render_lines(markdown, console.options, pad=False)
    lines: list[Text] = []
    for row in rows:
        line = Text(no_wrap=True)  # it has the width already
        for segment in row:
            line.append(printable(segment.text), segment.style)
        line.rstrip()
        lines.append(line)
    while lines and not lines[-1].plain:
        lines.pop()
    while lines and not lines[0].plain:
        lines.pop(0)
    return lines


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _CodeBlock(CodeBlock):
    """Code inside a list or a quotation."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
    }
