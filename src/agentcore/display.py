"""The blocks that a tool describes its calls and answers with.

Above: events, which record them. A model never sees a block, and a block holds no colours and no layout: those are up to
the program that draws it. A program that does not know a kind draws the block's `text`.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import re
from collections.abc import Iterator
from typing import Annotated, Literal, cast

from pydantic import Field, field_validator

from agentcore._value import Recorded, Verbatim


class BlockBase(Recorded):
    """Any block. Each has a `kind`, and a `text`: its plain form where that is more than the fields say."""


class MarkdownBlock(BlockBase):
    """Words, as Markdown. Put what is not Markdown (paths, names, values) into a `code_span`.

    With an empty text it shows nothing: so an answer that says only to the model that it was heard is passed over.
    """

    kind: Literal["markdown"] = "markdown"
    text: str
    place: Literal["body", "heading", "message"] = "body"
    """Where the words stand: below the call or the answer; on its first line, behind the tool's name or in place of
    "done"; or in place of the call, as what the agent says to the user."""


class CommandBlock(BlockBase):
    """A command, and in an answer how it ended."""

    kind: Literal["command"] = "command"
    command: str
    """As one would type it, in one line or several."""
    exit_code: int | None = None
    """None: it has not ended, or how is unknown."""
    output: str | None = None
    """The output. None: the event's own text."""
    text: str | None = None


class DiffBlock(BlockBase):
    """A change of files."""

    kind: Literal["diff"] = "diff"
    path: str | None = None
    """The file. None: the diff names its files."""
    diff: str
    """A unified diff, or only lines that begin with "+", "-" or a space."""
    text: str | None = None


class ExcerptBlock(BlockBase):
    """Lines of a file."""

    kind: Literal["excerpt"] = "excerpt"
    path: str
    first: int | None = None
    """The number of the first line, where it is known."""
    text: str | None = None
    """The lines. None: the event's own text."""


class TableBlock(BlockBase):
    """Rows of values."""

    kind: Literal["table"] = "table"
    columns: tuple[str, ...] = ()
    """The names of the columns; none where the rows speak for themselves."""
    rows: tuple[tuple[str, ...], ...]
    text: str | None = None


class DisplayTask(Recorded):
    """One thing to do."""

    title: str
    status: str = "todo"
    """"todo", "in_progress" or "done"."""
    notes: str = ""


class TasksBlock(BlockBase):
    """A list of things to do."""

    kind: Literal["tasks"] = "tasks"
    tasks: tuple[DisplayTask, ...]
    text: str | None = None


class DisplayImage(BlockBase):
    """A picture."""

    kind: Literal["image"] = "image"
    blob: Verbatim
    """The name of the blob that holds it."""
    media_type: Verbatim
    """As in "image/png"."""
    text: str | None = None


class ProgressBlock(BlockBase):
    """How far something is."""

    kind: Literal["progress"] = "progress"
    label: str
    done: float | None = None
    """From 0 to 1, where that is known."""
    text: str | None = None


class ConversationBlock(BlockBase):
    """Another conversation, as that of a sub-agent."""

    kind: Literal["conversation"] = "conversation"
    conversation_id: Verbatim
    title: str = ""
    text: str | None = None


class UnknownDisplay(BlockBase):
    """A block of a kind that only a newer version knows: kept as it is, and drawn by its `text`."""

    kind: Verbatim
    text: str | None = None

    @field_validator("kind")
    @classmethod
    def _not_a_known_kind(cls, value: str) -> str:
        if value in _KNOWN_KINDS:
            # Without this, a damaged block of a known kind would pass for an unknown one.
            raise ValueError(f"a display block of kind {value!r} with wrong fields")
        return value


_AnyKnown = (
    MarkdownBlock
    | CommandBlock
    | DiffBlock
    | ExcerptBlock
    | TableBlock
    | TasksBlock
    | DisplayImage
    | ProgressBlock
    | ConversationBlock
)

DisplayBlock = Annotated[
    Annotated[_AnyKnown, Field(discriminator="kind")] | UnknownDisplay, Field(union_mode="left_to_right")
]
"""Any block, one of an unknown kind included."""

_CLASSES: tuple[type[Recorded], ...] = _AnyKnown.__args__
_KNOWN_KINDS = frozenset(cast("str", cls.model_fields["kind"].default) for cls in _CLASSES)


_RUN = re.compile("`+")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def code_span(text: str) -> str:
    """Return the text as a code span, whatever backticks it has in it."""
    fence = "`" * (max(map(len, _RUN.findall(text)), default=0) + 1)
    # A space inside is needed beside a backtick, and readers strip one from each side where both sides have one.
    space = " " if not text or "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    return f"{fence}{space}{text}{space}{fence}"


def split_code_spans(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of one line of Markdown, in order, each with whether it is what a code span holds."""
    end = 0
    for span in _SPAN.finditer(markdown):
        if span.start() > end:
            yield markdown[end : span.start()], False
        inner = span[2]
        if len(inner) > 1 and inner[0] == inner[-1] == " ":
            inner = inner[1:-1]
        yield inner, True
        end = span.end()
    if end < len(markdown):
        yield markdown[end:], False


_MARKS = {"todo": "[ ]", "in_progress": "[~]", "done": "[x]"}


def plain_text(block: DisplayBlock) -> str:
    """Return the block's plain form: its `text`, or else what its fields say."""
    if block.text is not None:
        return block.text
    lines: list[str | None] = []
    match block:
        case CommandBlock():
            ended = None if block.exit_code is None else f"exit code {block.exit_code}"
            lines = [f"$ {block.command}", block.output, ended]
        case DiffBlock():
            lines = [block.path, block.diff]
        case TableBlock():
            lines = ["  ".join(row) for row in (block.columns, *block.rows)]
        case TasksBlock():
            for task in block.tasks:
                lines.append(f"{_MARKS.get(task.status, task.status)} {task.title}")
                lines += [f"    {line}" for line in task.notes.splitlines()]
        case DisplayImage():
            lines = [f"[a picture: {block.media_type}]"]
        case ProgressBlock():
            lines = [block.label if block.done is None else f"{block.label} ({block.done:.0%})"]
        case ConversationBlock():
            lines = [f"{block.title or 'a conversation'} ({block.conversation_id})"]
        case _:
            pass
    return "\n".join(line for line in lines if line)
