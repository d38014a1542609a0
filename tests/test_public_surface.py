"""Each public name has one address, a docstring, and a place in the reference.

The root package holds the names that a user types; the index of a folder (its `__init__.py`) holds the rest. An index
may give on what the index of a folder inside it holds.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rounds import some_quick

ROOT = Path(__file__).parents[1]
PACKAGES = ("agentcore", "agentcore_tools", "agentcore_sandbox", "agentcore_serve")


def root() -> ModuleType:
    """Import the root package; not at the top, so that one error does not hide the other tests."""
    return importlib.import_module("agentcore")


def public_names() -> list[str]:
    """Give what the root package lists."""
    return list(root().__all__)


def indexes() -> dict[str, dict[str, str]]:
    """Give each public folder's index: name -> the module that it comes from."""
    found: dict[str, dict[str, str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / "src" / package).rglob("__init__.py")):
            parts = path.parent.relative_to(ROOT / "src").parts
            # The command line is a program, not a library, and so is the server but for what makes one; the root package is
            # looked at by tests of its own.
            is_program = parts == ("agentcore", "cli") or (parts[0] == "agentcore_serve" and len(parts) > 1)
            if any(part.startswith("_") for part in parts) or parts == ("agentcore",) or is_program:
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found[".".join(parts)] = {
                name: str(node.module)
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
                for name in names_of(node, alias)
                if not name.startswith("_")
            }
    return found


def names_of(node: ast.ImportFrom, alias: ast.alias) -> list[str]:
    """Return the names that an import binds; those of a star import are the module's `__all__`."""
    if alias.name != "*":
        return [alias.asname or alias.name]
    names: list[str] = importlib.import_module(str(node.module)).__all__
    return names


def directives() -> set[str]:
    """Give what the reference documents: the targets of its `:::` lines."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    return {target for page in pages for target in re.findall(r"^::: ([\w.]+)", page.read_text("utf-8"), re.MULTILINE)}


def test_the_root_lists_each_name_once_and_has_it_and_shows_it_and_refuses_others() -> None:
    assert [name for name, times in Counter(public_names()).items() if times > 1] == []
    assert [name for name in public_names() if not hasattr(root(), name)] == []
    assert sorted(set(public_names()) - set(dir(root()))) == []
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = root().no_such_name


def test_every_class_and_function_of_the_root_has_a_docstring_of_its_own() -> None:
    def says_something(thing: Any) -> bool:
        # Its own: not inherited. A dataclass without one is given its signature, which says nothing.
        own: object = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
        return isinstance(own, str) and bool(own.strip()) and not own.startswith(f"{thing.__name__}(")

    things = {name: getattr(root(), name) for name in public_names() if not name.startswith("__")}
    documented = {name: thing for name, thing in things.items() if isinstance(thing, type) or callable(thing)}
    assert [name for name, thing in documented.items() if not says_something(thing)] == []


def test_every_name_of_the_root_comes_from_one_index() -> None:
    """So that `agentcore.X` and the `X` of a folder are the same thing."""
    homes: dict[str, set[int]] = {}
    for index, names in indexes().items():
        for name in names:
            homes.setdefault(name, set()).add(id(getattr(importlib.import_module(index), name)))
    things = {name: getattr(root(), name) for name in public_names() if not name.startswith("__")}
    # A module that is no folder (agentcore.errors, agentcore.assessment) is its own index.
    strays = [name for name, thing in things.items() if homes.get(name, {id(thing)}) != {id(thing)}]
    assert strays == []


@pytest.mark.parametrize(
    "first",
    some_quick(["from agentcore.tools import tool", "", "import agentcore.tools", "from agentcore import Agent"], 4),
)
def test_a_name_of_the_root_is_never_hidden_by_the_folder_of_the_same_name(first: str) -> None:
    """Importing a folder binds it in its parent, which would make `from agentcore import tool` a matter of order."""
    hidden = "[name for name in agentcore.__all__ if isinstance(getattr(agentcore, name), ModuleType)]"
    program = f"{first}\nimport agentcore\nfrom types import ModuleType\nprint(*{hidden})"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.split() == []


def test_no_name_is_in_two_indexes_unless_one_is_inside_the_other() -> None:
    homes: dict[str, list[str]] = {}
    for index, names in indexes().items():
        for name in names:
            homes.setdefault(name, []).append(f"{index}.")
    twice = {
        name: places
        for name, places in homes.items()
        if any(not (a.startswith(b) or b.startswith(a)) for a, b in combinations(places, 2))
    }
    assert twice == {}


def test_an_index_holds_only_what_its_own_folder_makes() -> None:
    borrowed = {
        f"{index}.{name}": module
        for index, names in indexes().items()
        for name, module in names.items()
        # A private module at the bottom has no index of its own: the index that gives its name is the address.
        if module != "__future__" and not module.startswith((f"{index}.", "agentcore._"))
    }
    assert borrowed == {}


def test_an_index_is_an_index() -> None:
    """A docstring and imports; a list of names, where there is one."""
    running: dict[str, list[str]] = {}
    for index in indexes():
        path = ROOT / "src" / Path(*index.split(".")) / "__init__.py"
        body = ast.parse(path.read_text(encoding="utf-8")).body
        odd = [
            ast.unparse(node)
            for node in body
            if not isinstance(node, ast.ImportFrom)
            and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        ]
        if odd or ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None:
            running[index] = odd
    assert running == {}


def test_the_reference_has_every_index() -> None:
    named = directives()
    top = {index for index, names in indexes().items() if names and index.count(".") <= 1}
    wanted = {"agentcore", *top}
    assert sorted(wanted - named) == []


def test_the_reference_names_only_what_exists() -> None:
    missing: list[str] = []
    for target in sorted(directives()):
        try:
            importlib.import_module(target)
        except ImportError:
            module, _, name = target.rpartition(".")
            if not hasattr(importlib.import_module(module), name):
                missing.append(target)
    assert missing == []
