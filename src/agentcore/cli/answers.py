"""What a tool answered, as a person is told of it: without the words that are there for the model.

A model is told in words how a command ended, and how to go on with one that runs. A person is told what is recorded beside
these words, in fewer of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import JsonValue
from rich.text import Text

from agentcore.cli.amounts import duration
from agentcore.cli.console import BAD, DIM, WARN
from agentcore.cli.plan import listed
from agentcore.cli.printable import OutputLines, one_line, printable
from agentcore.events import AgentErrorEvent, ObservationEvent
from agentcore.messages import DocumentBlock, ImageBlock, StoredResultBlock, TextBlock, UnknownBlock

__all__ = ["RUNS_COMMANDS", "answer_lines", "error_lines", "kept_at", "media", "output_lines", "standing"]

RUNS_COMMANDS: Final = frozenset({"run", "terminal"})
"""Tools whose answers are what a command wrote, and how things stand with it."""

_NOT_DONE: Final = {
    "still_running": "not run: the command before it still runs",
    "nothing_running": "nothing is running",
    "cut_off": "cut off: how it ended is not known",
    "nothing_lost": "cut off while it waited: nothing is lost by that",
}


_GIVEN: Final = re.compile(r"\s+Given: ")
_KEPT: Final = {"whole_at": "all of it", "stdout_at": "all of its output", "stderr_at": "all of its errors"}
"""Where it is recorded that the whole of a long output is, and how that is said."""


def answer_lines(name: str, event: ObservationEvent) -> list[Text]:
    """Give what a tool of this name answered, line by line: of a command what it wrote, of a task list the list."""
    if name == "task_tracker" and (tasks := listed(event.data.get("tasks"))):
        return tasks
    if name in RUNS_COMMANDS:
        written = "\n".join(block.text for block in event.content if isinstance(block, TextBlock))
        return [Text(line, DIM) for line in _read(_without_standing(written, event.data))]
    return output_lines(event.content)


def standing(name: str, data: Mapping[str, JsonValue], seconds: float = 0.0) -> Text | None:
    """Say how things stand after an answer; None where there is nothing to say.

    Args:
        name: The tool's.
        data: What was recorded beside the answer.
        seconds: How long the call took, where that is known.
    """
    after = f"after {duration(seconds)}" if seconds >= 1 else ""
    if name not in RUNS_COMMANDS:
        data = {key: data[key] for key in ("exit_code", "running", "signal") if key in data}
    code = data.get("exit_code")
    if (problem := _NOT_DONE.get(str(data.get("problem")))) is not None:
        return Text(problem, WARN)
    if data.get("running") is True:
        return Text(" ".join(filter(None, ("still running", after))), WARN)
    ended: list[str] = []
    if data.get("timed_out") is True:
        ended.append("took too long and was ended")
    if isinstance(code, int):
        signal = data.get("signal")
        ended.append(f"exit code {code} ({one_line(signal)})" if isinstance(signal, str) else f"exit code {code}")
    if data.get("shell_ended") is True:
        ended.append("and the shell has ended")
    if data.get("new_shell") is True:
        ended.append("in a new shell" if ended else "what was in the one before is gone")
    said = " ".join(filter(None, (", ".join(ended[:2]), *ended[2:], after)))
    return Text(said, BAD if code else DIM) if said else None


def kept_at(name: str, data: Mapping[str, JsonValue]) -> list[Text]:
    """Say where the whole of a command's long output is: a path to copy, on a line each."""
    if name not in RUNS_COMMANDS:
        return []
    return [
        Text(f"{what}: {one_line(path)}", DIM) for key, what in _KEPT.items() if isinstance(path := data.get(key), str)
    ]


def error_lines(event: AgentErrorEvent, *, whole: bool) -> list[str]:
    """Give why a call came to nothing, line by line.

    Of a call that can't be made, a model is also told what it gave and what is wanted: a person sees the call above.
    """
    error = event.error
    if event.code in ("bad_arguments", "unknown_tool") and not whole:
        error = _GIVEN.split(error, maxsplit=1)[0] or error
    return printable(error).strip("\n").split("\n") if error else []


def output_lines(content: Iterable[StoredResultBlock]) -> list[Text]:
    """Give what a tool answered, line by line, as the model was told it."""
    lines: list[Text] = []
    for block in content:
        match block:
            case TextBlock():
                lines += map(Text, _read(block.text))
            case ImageBlock() | DocumentBlock():
                lines.append(media(block))
            case UnknownBlock():
                lines.append(Text(f"[a block of type {one_line(block.type)}, which only a newer version knows]", DIM))
    return lines


def media(block: ImageBlock | DocumentBlock) -> Text:
    """Say what a picture or a document is."""
    what, name = ("a document", block.name) if isinstance(block, DocumentBlock) else ("a picture", None)
    said = [one_line(name)] if name else []
    said.append(one_line(block.url or block.media_type or "of an unknown type"))
    if block.data:
        said.append(f"{len(block.data) * 3 // 4 - block.data[-2:].count('='):,} bytes")
    return Text(f"[{what}: {', '.join(said)}]", DIM)


def _read(text: str) -> list[str]:
    reader = OutputLines()
    return [*reader.feed(text), *reader.finish()]


def _without_standing(text: str, data: Mapping[str, JsonValue]) -> str:
    """Take off what the tool itself says around the output: a line above it of a new shell, and one below it of the end."""
    if data.get("new_shell") is True and text.startswith("["):
        text = text.partition("\n")[2]
    is_told = isinstance(data.get("exit_code"), int) or data.get("running") is True or data.get("problem") is not None
    written, _, last = text.rpartition("\n")
    if is_told and last.startswith("[") and last.endswith("]"):
        text = written
    return "" if text == "(no output)" else text
