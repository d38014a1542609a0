"""How calls of the tools for files, searches and plans are said."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final, cast

from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, STRONG
from agentcore.cli.diff import changes
from agentcore.cli.plan import listed
from agentcore.cli.printable import one_line, printable
from agentcore.cli.said import Said, added, inside, with_arguments

__all__ = ["TOLD_BY_THEIR_ANSWERS", "say_file_call"]

TOLD_BY_THEIR_ANSWERS = frozenset({"apply_patch", "edit", "file_editor", "task_tracker", "write_file"})
"""Tools whose answers have what came of the call: the change as it was made, the list as it is now."""


def say_file_call(title: Text, name: str, given: Mapping[str, Any], root: str | None, longest: int) -> Said | None:
    """Say a call of one of these tools; None of another one, or where its arguments are others."""
    body: list[Text] = []
    match name, given:
        case "edit", {"file_path": str() as path, "old_string": str() as old, "new_string": str() as new, **rest}:
            title.append(f" {one_line(inside(path, root))}", STRONG)
            body = changes(old, new)
        case "write_file", {"file_path": str() as path, "content": str() as content, **rest}:
            title.append(f" {one_line(inside(path, root))}", STRONG)
            body = added(content)
        case "apply_patch", {"patch": str() as patch, **rest}:
            _say_files(title, patch, root)
            body = [_of_patch(line) for line in patch.split("\n")]
        case "task_tracker", {"command": "plan", "task_list": tasks, **rest} if (plan := listed(tasks)) is not None:
            title.append(" plan", DIM)
            body = plan
        case "task_tracker", {"command": str() as command, **rest}:
            title.append(f" {one_line(command)}", DIM)
        case "read_many", {"paths": [str(), *_], **rest} if all(isinstance(path, str) for path in given["paths"]):
            names = (shlex.quote(inside(path, root)) for path in cast("list[str]", given["paths"]))
            title.append(f" {one_line(' '.join(names))}", STRONG)
        case "grep" | "glob", {"pattern": str() as pattern, **rest}:
            title.append(f" {one_line(pattern)}", STRONG)
        case ("read_file" | "list_files", {"path": str() as path, **rest}) | (
            "list_directory",
            {"dir_path": str() as path, **rest},
        ):
            title.append(f" {one_line(inside(path, root))}", STRONG)
        case _:
            return None
    return Said(with_arguments(title, rest, longest, DIM), body)


def _say_files(title: Text, patch: str, root: str | None) -> None:
    """Name the files that a patch is about, and what is to become of them."""
    files: list[str] = []
    for what, path in _FILES.findall(patch):
        name = one_line(inside(path.strip(), root))
        if what == "Move to" and files:
            files[-1] = f"{files[-1]} -> {name}"
        else:
            files.append(f"{_VERBS.get(what, '')}{name}")
    more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    if files:
        title.append(f" {', '.join(files[:_MOST_FILES])}", STRONG).append(more, DIM)


_FILES: Final = re.compile(r"^\*\*\* (Add File|Delete File|Update File|Move to): (.+)$", re.MULTILINE)
_VERBS: Final = {"Add File": "add ", "Delete File": "delete "}
_MOST_FILES: Final = 6


def _of_patch(line: str) -> Text:
    return Text(
        printable(line), STRONG if line.startswith("*** ") else {"+": GOOD, "-": BAD, "@": DIM}.get(line[:1], "")
    )
