"""Calls and results, rendered from the display blocks that their tools recorded, or from the event if there are none.

No tool is known here by its name. Blocks may omit arguments: where a person decides about a call, the arguments that
the blocks do not show are added below them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue
from rich.cells import cell_len
from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, NAME, STRONG, WARN, styled
from agentcore.cli.diff import render_diff
from agentcore.cli.text import OutputLines, one_line, printable, relative_path
from agentcore.display import (
    CommandBlock,
    DiffBlock,
    DisplayBlock,
    ExcerptBlock,
    MarkdownBlock,
    TableBlock,
    TasksBlock,
    plain_text,
    split_code_spans,
)
from agentcore.events import ActionEvent, ObservationEvent
from agentcore.messages import DocumentBlock, ImageBlock, StoredResultBlock, TextBlock, UnknownBlock

_LONGEST_VALUE: Final = 200
_NO_END: Final = 1 << 62
_TASK_MARKS: Final = {"todo": ("[ ]", ""), "in_progress": ("[~]", STRONG), "done": ("[x]", GOOD)}


@dataclass(frozen=True, slots=True)
class RenderedCall:
    """A call, rendered."""

    title: Text
    """The tool and its main argument, on one line."""
    body: Sequence[Text] = ()
    """The rest: a longer command, a thought."""
    change: Sequence[Text] = ()
    """The proposed change or task list. The result has the actual one."""
    rest: Sequence[Text] = ()
    """The arguments that the blocks do not show, if the whole call was requested."""

    @property
    def below(self) -> list[Text]:
        """All lines below the title."""
        return [*self.body, *self.change, *self.rest]


@dataclass(frozen=True, slots=True)
class RenderedResult:
    """The result of a call, rendered."""

    output: Sequence[Text]
    """The output of the tool, which a live view has already streamed."""
    outcome: Text | None
    """The status, if it is worth a line."""
    lines: Sequence[Text]
    """Everything else."""
    is_command: bool = False
    has_change: bool = False

    @property
    def below(self) -> list[Text]:
        """All lines except the status, in order."""
        return [*self.output, *self.lines]


def message_of(event: ActionEvent) -> str | None:
    """Return the message to the user that this call consists of, if it does."""
    parts = [block.text for block in event.display if isinstance(block, MarkdownBlock) and block.place == "message"]
    return "\n\n".join(parts) if parts else None


def render_call(
    event: ActionEvent,
    arguments: Mapping[str, JsonValue] | None = None,
    *,
    root: str | None = None,
    whole: bool = False,
    message: bool = True,
) -> RenderedCall:
    """Render a call.

    Args:
        event: The action.
        arguments: The arguments after a change; the blocks describe the original ones.
        root: The workspace's folder; paths inside it are shown relative to it.
        whole: Whether to render all of it, however long.
        message: Whether to include a message to the user.
    """
    title = styled(one_line(event.tool_name), NAME)
    if event.malformed is not None:
        return RenderedCall(title, text_lines(event.malformed, BAD))
    longest = _NO_END if whole else _LONGEST_VALUE
    if arguments is not None or not event.display:
        return RenderedCall(title, _add_arguments(title, event.arguments if arguments is None else arguments, longest))
    body: list[Text] = []
    change: list[Text] = []
    has_command = False
    for block in event.display:
        match block:
            case MarkdownBlock(place="heading"):
                _add_heading(title, block.text, root, longest)
            case MarkdownBlock(place="message"):
                body += text_lines(block.text) if message else []
            case MarkdownBlock():
                body += [Text(style=DIM).append_text(line) for line in _render(block, root)]
            case CommandBlock() if not has_command:
                has_command = True
                first, *more = printable(block.command).split("\n")
                title.append(" $ ", DIM).append(first, STRONG)
                body += [Text(f"> {line}", STRONG) for line in more]
            case DiffBlock() | TasksBlock():
                change += _render(block, root)
            case _:
                body += _render(block, root)
    if not whole:
        return RenderedCall(title, body, change)
    parts = [line.plain for line in (title, *body, *change)]
    parts += [
        task.status for block in event.display if isinstance(block, TasksBlock) for task in block.tasks
    ]  # as marks
    seen = "\n".join((*parts, "" if message else printable(message_of(event) or "")))
    rest: list[Text] = []
    for name, value in event.arguments.items():
        if not _is_seen(name, value, seen, root):
            line = Text()
            below = _add_arguments(line, {name: value}, longest)
            rest += below or [line[1:]]
    return RenderedCall(title, body, change, rest)


def render_result(event: ObservationEvent, *, root: str | None = None) -> RenderedResult:
    """Render a result."""
    output: list[Text] = []
    lines: list[Text] = []
    states: list[str] = []
    command: CommandBlock | None = None
    for block in event.display:
        match block:
            case MarkdownBlock(place="heading"):
                states.append("".join(one_line(piece) for piece, _ in split_code_spans(block.text)))
            case CommandBlock():
                command = block
                written = event.text if block.output is None else block.output
                output += [Text(line, DIM) for line in _read(written)]
            case ExcerptBlock(text=None):
                output += output_lines(event.content)
            case DiffBlock():
                lines += render_diff(block.diff, root=root) or output_lines(event.content)
            case _:
                lines += _render(block, root)
    if not event.display:
        output = output_lines(event.content)
    if command is None and event.is_error:
        output, lines = [[Text(line.plain, BAD) for line in each] for each in (output, lines)]
    if command is not None and command.exit_code is not None and not states:
        states.append(f"exit code {command.exit_code}")
    style = DIM
    if command is not None:
        style = WARN if command.exit_code is None else BAD if command.exit_code else DIM
    elif event.is_error:
        style = BAD
    return RenderedResult(
        output,
        Text(", ".join(states), style) if states else None,
        lines,
        is_command=command is not None,
        has_change=any(isinstance(block, DiffBlock | TasksBlock) for block in event.display),
    )


def output_lines(content: Iterable[StoredResultBlock]) -> list[Text]:
    """Return a tool's answer, line by line, as the model reads it."""
    lines: list[Text] = []
    for block in content:
        match block:
            case TextBlock():
                lines += map(Text, _read(block.text))
            case ImageBlock() | DocumentBlock():
                lines.append(render_media(block))
            case UnknownBlock():
                lines.append(Text(f"[a block of type {one_line(block.type)}; a newer version can show it]", DIM))
    return lines


def render_media(block: ImageBlock | DocumentBlock) -> Text:
    """Describe a picture or a document in one line."""
    what, name = ("a document", block.name) if isinstance(block, DocumentBlock) else ("a picture", None)
    parts = [one_line(name)] if name else []
    parts.append(one_line(block.url or block.media_type or "of an unknown type"))
    if block.data:
        parts.append(f"{len(block.data) * 3 // 4 - block.data[-2:].count('='):,} bytes")
    return Text(f"[{what}: {', '.join(parts)}]", DIM)


def _render(block: DisplayBlock, root: str | None) -> list[Text]:
    match block:
        case MarkdownBlock():
            return [_render_markdown(line) for line in printable(block.text).split("\n")] if block.text else []
        case DiffBlock():
            return render_diff(block.diff, root=root) if block.diff else []
        case TableBlock():
            return _render_table(block)
        case TasksBlock():
            return render_tasks(block)
        case ExcerptBlock(text=str() as text):
            return [Text(one_line(relative_path(block.path, root)), STRONG), *text_lines(text)]
        case _:
            return text_lines(plain_text(block) or f"[a block of kind {block.kind}; a newer version can show it]", DIM)


def _render_markdown(line: str) -> Text:
    """Render a line as it is; the value of "label: `value`" loses its quotes and is never wrapped, so that it can be copied."""
    match list(split_code_spans(line)):
        case [(str() as label, False), (str() as value, True)] if label.endswith(": "):
            return Text(label + value, no_wrap=True)
        case _:
            return Text(line)


def _render_table(block: TableBlock) -> list[Text]:
    rows = [[one_line(cell) for cell in row] for row in (block.columns, *block.rows) if row]
    widths = [0] * max(map(len, rows), default=0)
    for row in rows:
        for number, cell in enumerate(row[:-1]):
            widths[number] = max(widths[number], cell_len(cell) + 2)
    drawn = [
        Text("".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=False)).rstrip())
        for row in rows
    ]
    if block.columns and drawn:
        drawn[0].style = STRONG
    return drawn


def render_tasks(block: TasksBlock) -> list[Text]:
    lines: list[Text] = []
    for task in block.tasks:
        mark, style = _TASK_MARKS.get(task.status, (one_line(task.status), ""))
        lines.append(Text(f"{mark} {one_line(task.title)}", style))
        if task.notes:
            lines += [Text(f"    {line}", DIM) for line in printable(task.notes).split("\n")]
    return lines


def _add_heading(title: Text, markdown: str, root: str | None, longest: int) -> None:
    title.append(" ")
    for piece, is_code in split_code_spans(markdown):
        piece_text = _shorten(one_line(relative_path(piece, root)), longest) if is_code else one_line(piece)
        title.append(piece_text, STRONG if is_code else DIM)


def _add_arguments(title: Text, arguments: Mapping[str, Any], longest: int) -> list[Text]:
    """Append arguments to a title, and return the lines of those that have several, to print below it."""
    below: list[Text] = []
    for name, value in arguments.items():
        if value is None:
            continue  # models send null for an absent argument
        if isinstance(value, str) and "\n" in value.strip("\n"):
            below += [Text(f"{one_line(name)}:", DIM), *text_lines(value)]
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        title.append(f" {one_line(name)}=", DIM).append(_shorten(one_line(shown), longest))
    return below


def _is_seen(name: str, value: JsonValue, seen: str, root: str | None) -> bool:
    """Return whether a value is visible in the rendered text, line by line."""
    match value:
        case None:
            return True
        case bool():
            return f"{name}={json.dumps(value)}" in seen
        case int() | float():
            return re.search(rf"(?<![\w.]){re.escape(f'{value:g}')}(?![\w.])", seen) is not None
        case str():
            return all(line.strip() in seen for line in printable(relative_path(value, root)).split("\n"))
        case list():
            return all(_is_seen(name, each, seen, root) for each in value)
        case dict():
            return all(_is_seen(key, each, seen, root) for key, each in value.items())


def _shorten(value: str, longest: int) -> str:
    return value if len(value) <= longest else f"{value[:longest]}... ({len(value):,} characters)"


def _read(text: str) -> list[str]:
    reader = OutputLines()
    return [*reader.feed(text), *reader.finish()]


def text_lines(text: str, style: str = "") -> list[Text]:
    """Return printable text line by line; no line for no text."""
    return [Text(line, style) for line in printable(text).strip("\n").split("\n")] if text else []
