"""Reaching every string in a value of lists, dictionaries and models, and the fields of a model that may hold one."""

from __future__ import annotations

import re
import types
from collections.abc import Awaitable, Callable, Collection
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast, final, get_args, get_origin

from pydantic import AwareDatetime, BaseModel

from agentcore._value import VERBATIM
from agentcore.errors import SecretError

_TEXTLESS: tuple[type, ...] = (
    *(bool, int, float, complex, bytes, types.NoneType),
    *(Decimal, Enum, datetime, date, time, timedelta),
    cast("type", AwareDatetime),  # a class of its own at run time
)


def _same(model: BaseModel) -> BaseModel:
    return model


def _stays(item: object) -> bool:
    return item is None


@final
class LeafMap:
    """Applies a function to every string in a value, the keys of dictionaries too."""

    __slots__ = ("_leaves", "_model", "_text")

    def __init__(
        self,
        text: Callable[[str], str],
        model: Callable[[BaseModel], BaseModel] = _same,
        leaves: Callable[[object], bool] = _stays,
    ) -> None:
        """Change strings with `text` and models with `model`; a changed item that `leaves` names goes from its list."""
        self._text = text
        self._model = model
        self._leaves = leaves

    def __call__(self, value: Any) -> Any:
        """Return the value with all its strings changed; what holds none that changes comes back as the same object."""
        if isinstance(value, str):
            return value if isinstance(value, Enum) else self._text(value)
        if isinstance(value, BaseModel):
            return self._model(value)
        if isinstance(value, dict):
            return self._dict(cast("dict[Any, Any]", value))
        for kind in (tuple, list, set, frozenset):
            if isinstance(value, kind):
                return self._items(cast("Collection[Any]", value), kind)
        return value

    def _items(self, items: Collection[Any], kind: Callable[[list[Any]], Collection[Any]]) -> Collection[Any]:
        pairs = [(item, self(item)) for item in items]
        if all(new is old for old, new in pairs):
            return items
        return kind([new for old, new in pairs if new is old or not self._leaves(old)])

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        mapped: dict[Any, Any] = {}
        changed = False
        for key, item in value.items():
            new_key, new_item = self(key), self(item)
            changed = changed or new_key is not key or new_item is not item
            while new_key in mapped:
                new_key = f"{new_key}'"  # two keys that became one: no item may get lost
            mapped[new_key] = new_item
        return mapped if changed else value


@cache
def text_fields(cls: type[BaseModel]) -> tuple[str, ...]:
    """Name the fields of a model class that may hold text and are not marked as verbatim.

    A field that is marked in a part only (the keys of a dictionary, say) counts as text.
    """
    return tuple(
        name
        for name, field in cls.model_fields.items()
        if not any(mark is VERBATIM for mark in field.metadata) and _may_hold_text(field.annotation)
    )


def _may_hold_text(annotation: Any) -> bool:
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is Annotated:
        inner, *marks = arguments
        return not any(mark is VERBATIM for mark in marks) and _may_hold_text(inner)
    if origin is Literal:
        return False
    if arguments:
        return any(_may_hold_text(argument) for argument in arguments if argument is not ...)
    # What is not known (Any, a type alias, a class of the program's own) may hold anything.
    return not (isinstance(annotation, type) and issubclass(annotation, _TEXTLESS))


_Json = TypeVar("_Json")
_MASK = re.compile(r"<secret:([A-Za-z_][A-Za-z0-9_]*)((?::encoded)*)>")


def find_masks(value: object) -> tuple[str, ...]:
    """Return the masks that stand in the strings of a value, each once."""
    found: dict[str, None] = {}

    def collect(text: str) -> str:
        found.update((match[0], None) for match in _MASK.finditer(text))
        return text

    LeafMap(collect)(value)
    return tuple(found)


async def unmask(
    value: _Json,
    lookup: Callable[[str], Awaitable[str]],
    *,
    names: Collection[str] | None = None,
    typed_masks: Collection[str] = (),
) -> _Json:
    """Return the value with every `<secret:NAME>` in it replaced by what `lookup` (as `SecretRegistry.get`) says.

    With `names`, masks of other names are plain words, and stay. So do `typed_masks`, which masking did not put there.

    Raises:
        SecretError: what can't be put back, all of it named: no such secret, no value to be had, or the value stood
            there in an encoding that the mask does not tell.
    """
    masks: dict[str, bool] = {}

    def collect(text: str) -> str:
        for match in _MASK.finditer(text):
            if match[0] not in typed_masks and (names is None or match[1] in names):
                masks[match[1]] = masks.get(match[1], False) or bool(match[2])
        return text

    LeafMap(collect)(value)
    if not masks:
        return value

    found: dict[str, str] = {}
    missing: list[str] = []
    for name, encoded in masks.items():
        if encoded:
            missing.append(f"{name!r} (it stood there encoded, or together with others, and can't be rebuilt)")
            continue
        try:
            found[name] = await lookup(name)
        except SecretError as error:
            missing.append(f"{name!r} ({error})")
    if missing:
        raise SecretError(
            f"Secrets stood here that can't be put back: {', '.join(missing)}. "
            "Register what is missing and try again, or reject the action and have it asked for anew."
        )

    def put_back(text: str) -> str:
        return _MASK.sub(lambda match: match[0] if match[0] in typed_masks else found.get(match[1], match[0]), text)

    complete: _Json = LeafMap(put_back)(value)
    return complete
