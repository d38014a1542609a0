"""Names of an index that are imported when a program first asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(index: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of an index: `modules` has each lazy name with the module that it comes from."""

    def find(name: str) -> object:
        if name in modules:
            return getattr(import_module(modules[name]), name)
        raise AttributeError(f"module {index!r} has no attribute {name!r}")

    return find
