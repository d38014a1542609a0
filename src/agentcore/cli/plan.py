"""A list of what is to be done, as it is shown."""

from __future__ import annotations

from typing import Any, Final, cast

from rich.text import Text

from agentcore.cli.console import DIM, GOOD, STRONG
from agentcore.cli.printable import one_line, printable

__all__ = ["listed"]

_MARKS: Final = {"todo": ("[ ]", ""), "in_progress": ("[~]", STRONG), "done": ("[x]", GOOD)}


def listed(tasks: object) -> list[Text] | None:
    """Give a plan line by line: what is done, what is being done, what is left; None of what is no plan."""
    if not isinstance(tasks, list) or not all(map(_is_task, cast("list[Any]", tasks))):
        return None
    lines: list[Text] = []
    for task in cast("list[dict[str, str]]", tasks):
        status = task.get("status", "todo")
        mark, style = _MARKS.get(status, (one_line(status), ""))
        lines.append(Text(f"{mark} {one_line(task['title'])}", style))
        if notes := task.get("notes"):
            lines += [Text(f"    {line}", DIM) for line in printable(notes).split("\n")]
    return lines


def _is_task(task: object) -> bool:
    if not isinstance(task, dict) or "title" not in task:
        return False
    fields = cast("dict[str, Any]", task)
    return fields.keys() <= {"title", "status", "notes"} and all(isinstance(value, str) for value in fields.values())
