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


def test_no_tool_is_named_and_nothing_is_decided_by_the_name_of_one() -> None:
    def is_name(node: ast.AST) -> bool:
        return any(isinstance(part, ast.Attribute) and part.attr == "tool_name" for part in ast.walk(node))

    def knows_a_tool(node: ast.AST) -> bool:
        match node:
            case ast.Constant(value=str() as text):
                return text in TOOLS.keys() - WORDS
            case ast.Match(subject=subject):
                return is_name(subject)
            case ast.Subscript(slice=key):
                return is_name(key)
            case ast.Compare(ops=ops):
                return is_name(node) and not any(isinstance(op, ast.Is | ast.IsNot) for op in ops)
            case _:
                return False

    found = [
        f"{file}:{getattr(node, 'lineno', 0)}"
        for file, tree in trees()
        for node in ast.walk(tree)
        if knows_a_tool(node)
    ]
    assert found == []
