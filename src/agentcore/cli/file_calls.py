"""How calls of the tools for files, searches and plans are said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, STRONG
from agentcore.cli.diff import changes
from agentcore.cli.printable import one_line, printable
from agentcore.cli.said import Said, added, inside, lines, with_arguments

__all__ = ["TOLD_BY_THEIR_ANSWERS", "say_file_call"]

TOLD_BY_THEIR_ANSWERS = frozenset({"apply_patch", "edit", "file_editor", "task_tracker", "write_file"})
"""Tools whose answers have what came of the call: the change as it was made, the list as it is now."""


def say_file_call(title: Text, name: str, given: Mapping[str, Any], root: str | None, longest: int) -> Said | None:
    """Say a call of one of these tools; None of another one, or where its arguments are others."""
    match name, given:
        case "edit", {"file_path": str() as path, "old_string": str() as old, "new_string": str() as new, **rest}:
            return Said(_named(title, inside(path, root), rest, longest), changes(old, new))
        case "write_file", {"file_path": str() as path, "content": str() as content, **rest}:
            return Said(_named(title, inside(path, root), rest, longest), added(content))
        case "apply_patch", {"patch": str() as patch, **rest}:
            return Said(with_arguments(title, rest, longest, DIM), [_of_patch(line) for line in patch.split("\n")])
        case "task_tracker", {"command": "plan", "task_list": tasks, **rest} if _is_plan(tasks):
            return Said(with_arguments(title.append(" plan", DIM), rest, longest, DIM), _listed(tasks))
        case "grep" | "glob", {"pattern": str() as pattern, **rest}:
            return Said(_named(title, pattern, rest, longest))
        case "read_file" | "list_files", {"path": str() as path, **rest}:
            return Said(_named(title, inside(path, root), rest, longest))
        case "list_directory", {"dir_path": str() as path, **rest}:
            return Said(_named(title, inside(path, root), rest, longest))
        case _:
            return None


def _named(title: Text, what: str, rest: Mapping[str, Any], longest: int) -> Text:
    return with_arguments(title.append(f" {one_line(what)}", STRONG), rest, longest, DIM)


def _of_patch(line: str) -> Text:
    return Text(
        printable(line), STRONG if line.startswith("*** ") else {"+": GOOD, "-": BAD, "@": DIM}.get(line[:1], "")
    )


_MARKS = {"todo": "[ ]", "in_progress": "[~]", "done": "[x]"}


def _is_plan(tasks: Any) -> TypeGuard[Sequence[Mapping[str, str]]]:
    return isinstance(tasks, list) and all(map(_is_task, cast("list[Any]", tasks)))


def _is_task(task: Any) -> bool:
    if not isinstance(task, dict) or "title" not in task:
        return False
    fields = cast("dict[str, Any]", task)
    return fields.keys() <= {"title", "status", "notes"} and all(isinstance(value, str) for value in fields.values())


def _listed(tasks: Sequence[Mapping[str, str]]) -> list[Text]:
    listed: list[Text] = []
    for task in tasks:
        status = task.get("status", "todo")
        listed.append(Text(f"{_MARKS.get(status, one_line(status))} {one_line(task['title'])}"))
        if notes := task.get("notes"):
            listed += [Text(f"    {line.plain}", DIM) for line in lines(notes)]
    return listed
