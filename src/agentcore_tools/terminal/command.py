"""A command before it is typed: whether it can have been meant as one, and whether it is several."""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from typing import Final

from anyio import to_thread

from agentcore.errors import ToolError

__all__ = ["count", "refuse"]

_BETWEEN: Final = re.compile(r"[\n;&]")
# For some texts the parser takes time that grows with the square of their length: for one of this length, a tenth of a second.
_LONGEST: Final = 10_000


def refuse(command: str) -> None:
    """Refuse what can't have been meant as a command.

    Raises:
        ToolError: it is a list or an object, or bash can't be given it.
    """
    if "\0" in command:
        raise ToolError("There is a NUL character in the command, and bash can't take one. For printf, write \\0.")
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if isinstance(read(command.strip()), list | dict):
                raise ToolError(
                    "The command is a list or an object, and bash would not understand it. Write one line of text, as you "
                    "would type it."
                )


async def count(command: str) -> int:
    """Count the commands that stand one behind the other, on lines of their own or after `;` or `&`: the last gives the exit code.

    A loop, a function, a pipeline, a list with `&&` and `||`, and a here-document with what reads it are one each. What is very long, or
    no bash to the parser (tree-sitter's grammar of it), counts as one.
    """
    command = command.strip()
    if len(command) > _LONGEST or _BETWEEN.search(command) is None:
        return 1
    return await to_thread.run_sync(_count, command)


def _count(command: str) -> int:
    # Few commands are several, and what parses them takes longer to load than they to run.
    import tree_sitter_bash  # noqa: PLC0415
    from tree_sitter import Language, Parser  # noqa: PLC0415

    program = Parser(Language(tree_sitter_bash.language())).parse(command.encode(errors="replace")).root_node
    if program.has_error:
        return 1
    return max(1, sum(child.is_named and child.type != "comment" for child in program.children))
