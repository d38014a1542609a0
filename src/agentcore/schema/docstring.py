"""What a docstring says of a function and of its parameters, in google, numpy or rest style."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from docstring_parser import Docstring

__all__ = ["Described", "read_docstring"]

# A docstring may begin with its parameters; the parser needs a first sentence to find them.
_FIRST = "_"


class Described(NamedTuple):
    """A docstring, taken apart."""

    text: str = ""
    """What the function does, with what it returns and the examples, without its parameters and errors."""
    parameters: Mapping[str, str] = MappingProxyType({})
    """The sentence of each parameter that has one."""


def read_docstring(docstring: str | None) -> Described:
    """Take a docstring apart. One in no known style is all text."""
    if not docstring or not docstring.strip():
        return Described()
    clean = inspect.cleandoc(docstring)
    # Imported with the first docstring that is read: with its parsers for all styles it costs a tenth of importing agentcore.
    from docstring_parser import ParseError, parse  # noqa: PLC0415

    try:
        parsed = parse(f"{_FIRST}\n\n{clean}")
    except ParseError:
        return Described(text=clean)
    parameters = {parameter.arg_name: (parameter.description or "").strip() for parameter in parsed.params}
    return Described(_text(parsed), {name: sentence for name, sentence in parameters.items() if sentence})


def _text(parsed: Docstring) -> str:
    parts = [(parsed.description or "").removeprefix(_FIRST).strip()]
    if parsed.returns is not None and parsed.returns.description:
        parts.append(f"Returns: {parsed.returns.description.strip()}")
    examples = ["\n".join(filter(None, (example.snippet, example.description))) for example in parsed.examples]
    if any(examples):
        parts.append("Examples:\n" + "\n".join(examples))
    return "\n\n".join(part for part in parts if part)
