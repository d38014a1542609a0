"""The command line draws what tools say of themselves: it knows none of them by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import agentcore.cli
from described import TOOLS

FOLDER = Path(agentcore.cli.__file__).parent
SCRIPT = "demo.py"
"""What the demo's scripted model says, calls of tools included."""
WORDS = frozenset({"edit", "run"})
"""Names of tools that are words of the command line, too: a command, and an answer to a question."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(FOLDER.glob("*.py")):
        if path.name != SCRIPT:
            yield path.name, ast.parse(path.read_text(encoding="utf-8"))


def test_no_name_of_a_tool_stands_in_its_code() -> None:
    names = TOOLS.keys() - WORDS
    found = [
        f"{file}:{node.lineno}: {node.value!r}"
        for file, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in names
    ]
    assert found == []


def test_nothing_is_decided_by_the_name_of_a_tool() -> None:
    def is_name(node: ast.AST) -> bool:
        return any(isinstance(part, ast.Attribute) and part.attr == "tool_name" for part in ast.walk(node))

    found = [
        f"{file}:{node.lineno}"
        for file, tree in trees()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Match) and is_name(node.subject))
        or (isinstance(node, ast.Subscript) and is_name(node.slice))
        or (
            isinstance(node, ast.Compare)
            and is_name(node)
            and not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        )
    ]
    assert found == []
