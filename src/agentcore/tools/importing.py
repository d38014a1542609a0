"""Import paths: the names by which functions and models of a program stand in a log."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["import_path", "look_up"]


def import_path(thing: Any) -> str | None:
    """Give `module:name` for a function or class that stands at the top of a module, else None."""
    module: str | None = getattr(thing, "__module__", None)
    name: str | None = getattr(thing, "__qualname__", None)
    if module is None or name is None or not name.isidentifier():
        return None  # inside a function or a class, or a lambda
    return f"{module}:{name}"


def look_up(path: str) -> Any:
    """Give what stands under an import path in a module that is imported already, or None. It imports nothing."""
    module, _, name = path.partition(":")
    # Not getattr: a module may import others when it is asked for a name that it does not have yet.
    return getattr(sys.modules.get(module), "__dict__", {}).get(name)
