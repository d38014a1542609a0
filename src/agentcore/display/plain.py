"""Blocks in plain words, for programs that draw nothing."""

from __future__ import annotations

from agentcore.display.blocks import (
    CommandBlock,
    ConversationBlock,
    DiffBlock,
    DisplayBlock,
    DisplayImage,
    ProgressBlock,
    TableBlock,
    TasksBlock,
)

__all__ = ["plain_text"]

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
