"""Checking the arguments of what programs construct and call: a table of what each one is, and one place that checks it.

Above: the constructors (by `checked`), the values (`_value.py`, whose fields pydantic checks) and the methods of a
conversation. Below: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import isroutine
from os import PathLike
from typing import Any, Final, NamedTuple, NoReturn, TypeVar, cast

C = TypeVar("C", bound=Callable[..., Any])

_LONGEST: Final = 80


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_path(value: object) -> bool:
    return isinstance(value, PathLike) or (isinstance(value, str) and value != "")


def _explain_empty(value: object) -> str | None:
    return "Pass '.' for the current folder." if value == "" else None


def _is_text_by_name(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(part, str) for item in cast("Mapping[Any, Any]", value).items() for part in item
    )


def _name_model(value: object) -> str | None:
    return f"Pass the model and not its name: LLM({value!r})." if isinstance(value, str) else None


def _no_hint(value: object) -> str | None:  # noqa: ARG001 every hint is asked about a value
    return None


class Argument(NamedTuple):
    """One row of a table: what an argument has to be."""

    description: str
    """It, behind "must be"."""
    accepts: Callable[[object], bool]
    """Returns whether a value is that."""
    hint: Callable[[object], str | None] = _no_hint
    """Returns a sentence on what to do about a value that is not, or None."""
    hidden: bool = False
    """True if the value may hold a secret: an error names its type only."""


def instance_of(*classes: type, description: str) -> Argument:
    """Return the row of an argument that is an instance of one of the classes."""

    def accepts(value: object) -> bool:
        return isinstance(value, classes)

    return Argument(description, accepts)


def object_with(*names: str, description: str) -> Argument:
    """Return the row of an argument that is an object with these methods."""

    def accepts(value: object) -> bool:
        return has_methods(value, *names)

    return Argument(description, accepts)


def one_of(*values: str) -> Argument:
    """Return the row of an argument that is one of a few words."""

    def accepts(value: object) -> bool:
        return value in values

    return Argument(" or ".join(f'"{value}"' for value in values), accepts)


def optional(argument: Argument) -> Argument:
    """Return the row of an argument that may be None too."""

    def accepts(value: object) -> bool:
        return value is None or argument.accepts(value)

    return argument._replace(description=f"{argument.description}, or None", accepts=accepts)


def has_methods(value: object, *names: str) -> bool:
    """Return whether it is an object (not a class) with these attributes."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in names)


TEXT: Final = instance_of(str, description="text")
FLAG: Final = instance_of(bool, description="True or False")
WHOLE_NUMBER: Final = Argument("a whole number", _is_whole)
NUMBER: Final = Argument("a number", _is_number)
SECONDS: Final = Argument("a number of seconds above 0", _is_seconds)
MODEL: Final = object_with("complete", "stream", description="a model, as LLM('openai/gpt-5')")._replace(
    hint=_name_model
)
TEXT_BY_NAME: Final = Argument("a mapping of text to text", _is_text_by_name)
FOLDER: Final = Argument("the path of a folder", _is_path, _explain_empty)


def check_arguments(table: Mapping[str, Argument], **arguments: object) -> None:
    """Check arguments by the table; one that it does not list may be anything.

    Raises:
        TypeError: One of them is not what it has to be.
    """
    for name, value in arguments.items():
        row = table.get(name)
        if row is None or row.accepts(value):
            continue
        shown = f"an object of type {type(value).__name__}" if row.hidden else show(value)
        hint = f"Did you mean {value.__name__}(...)?" if isinstance(value, type) else row.hint(value)
        raise TypeError(f"`{name}` must be {row.description}, not {shown}.{f' {hint}' if hint else ''}")


def checked(**table: Argument) -> Callable[[C], C]:
    """Check the arguments of a function, or of a class when it is made: their names, and each by the table.

    An unknown name raises a TypeError that says which one was probably meant.
    """

    def decorate(target: C) -> C:
        if not isinstance(target, type):
            return cast("C", _checked(target, table))
        made: Any = target
        made.__init__ = _checked(made.__init__, table)
        return cast("C", made)

    return decorate


def _checked(function: Any, table: Mapping[str, Argument]) -> Any:
    code = function.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional = names[: code.co_argcount]
    is_method = names[0] == "self"

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in names:
                owner = type(args[0]).__name__ if is_method else function.__name__
                refuse_unknown(owner, name, names[is_method:])
        check_arguments(table, **dict(zip(positional, args, strict=False)), **kwargs)
        return function(*args, **kwargs)

    return call


# Arguments that are called so elsewhere, and no spelling leads to.
_ELSEWHERE: Final = {
    "Agent": {"model": "llm", "prompt": "system_prompt", "output_type": "output"},
    "Limits": {"max_turns": "steps", "max_iterations": "steps", "budget": "cost", "timeout": "run_seconds"},
    "LLM": {"max_tokens": "max_output_tokens", "name": "model", "max_retries": "num_retries", "retries": "num_retries"},
    "Conversation": {"session_id": "id", "conversation_id": "id", "policy": "confirm", "folder": "workspace"},
}

_MOST_NAMES: Final = 8


def refuse_unknown(owner: str, name: str, known: Iterable[str]) -> NoReturn:
    """Refuse an argument that there is not.

    Raises:
        TypeError: It names the argument that was probably meant, or those that there are if they are few.
    """
    # Here because importing it takes longer than the rest of this module, and only mistakes need it.
    from difflib import get_close_matches  # noqa: PLC0415

    names = [each for each in known if not each.startswith("_")]
    meant = _ELSEWHERE.get(owner, {}).get(name)
    close = [meant] if meant in names else get_close_matches(name, names, n=1)
    if close:
        raise TypeError(f"{owner} has no argument `{name}`: did you mean `{close[0]}`?")
    listed = f" It has {', '.join(f'`{each}`' for each in names)}." if 0 < len(names) <= _MOST_NAMES else ""
    raise TypeError(f"{owner} has no argument `{name}`.{listed}")


def show(value: object) -> str:
    """Return a short description of a value for an error."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isroutine(value):
        return f"the function {value.__name__}"
    try:
        text = repr(value)
    except Exception:  # a value that is refused may be any object, broken ones included
        text = ""
    return text if 0 < len(text) <= _LONGEST else f"an object of type {type(value).__name__}"
