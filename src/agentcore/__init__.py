"""An async-native runtime for software agents.

Above: your program. Everything a program types most is here; the rest has its folder: `agentcore.events`,
`agentcore.messages`, `agentcore.record`, `agentcore.tools`, `agentcore.errors`, `agentcore.testing` ...

The names are listed once, in `__init__.pyi` beside this file. Each is imported when it is first asked for, so that
importing agentcore stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from os import path
from typing import Any

__version__ = "0.1.0"


def _read_index() -> dict[str, str]:
    with open(path.join(path.dirname(__file__), "__init__.pyi"), encoding="utf-8") as index:
        lines = [line.split() for line in index if line.startswith("from ")]
    return {words[3]: words[1] for words in lines}  # from MODULE import NAME as NAME


_MODULES = _read_index()

__all__ = sorted(_MODULES)  # noqa: PLE0605 # pyright: ignore[reportUnsupportedDunderAll] type checkers read the stub


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'agentcore' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
