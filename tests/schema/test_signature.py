"""Functions, read as models of their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import pytest
from pydantic import BaseModel, Field, ValidationError

from agentcore.errors import SchemaError
from agentcore.schema import Signature, read_signature

if TYPE_CHECKING:
    from decimal import Decimal


class Town(BaseModel):
    name: str
    people: int = 0


class Handle:
    """Stands for what a caller fills in."""


def properties(signature: Signature) -> dict[str, Any]:
    return cast("dict[str, Any]", signature.schema["properties"])


def test_types_defaults_and_descriptions_become_the_schema() -> None:
    def weather(
        town: Town, days: int = 3, unit: Annotated[str, Field(description="C or F.", max_length=1)] = "C"
    ) -> str:
        """Tell the weather.

        Args:
            town: Where.
            days: How far ahead.
            unit: Not this one.
        """
        return f"{town}{days}{unit}"

    signature = read_signature(weather)
    assert signature.text == "Tell the weather."
    assert signature.schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "town": {
                "type": "object",
                "description": "Where.",
                "properties": {"name": {"type": "string"}, "people": {"type": "integer", "default": 0}},
                "required": ["name"],
            },
            "days": {"type": "integer", "default": 3, "description": "How far ahead."},
            "unit": {"type": "string", "default": "C", "maxLength": 1, "description": "C or F."},
        },
        "required": ["town"],
    }


def test_binding_gives_typed_values_by_place_and_by_name() -> None:
    def move(source: Path, /, town: Town, *, force: bool = False) -> tuple[Any, ...]:
        return source, town, force

    signature = read_signature(move)
    arguments = signature.model.model_validate({"source": "/a", "town": {"name": "Ulm"}})
    by_place, by_name = signature.bind(arguments, {})
    assert move(*by_place, **by_name) == (Path("/a"), Town(name="Ulm"), False)


def test_names_that_a_model_can_not_have_are_arguments_all_the_same() -> None:
    def odd(json: dict[str, int], _hidden: int, model_config: str, copy: bool = False) -> tuple[Any, ...]:
        return json, _hidden, model_config, copy

    signature = read_signature(odd)
    assert list(properties(signature)) == ["json", "_hidden", "model_config", "copy"]
    arguments = signature.model.model_validate({"json": {"a": 1}, "_hidden": 2, "model_config": "x", "copy": True})
    _, by_name = signature.bind(arguments, {})
    assert odd(**by_name) == ({"a": 1}, 2, "x", True)


@pytest.mark.parametrize("optional", [False, True])
def test_an_injected_parameter_is_not_in_the_schema_and_is_filled_in(optional: bool) -> None:
    def plain(a: int, handle: Handle) -> tuple[int, Handle]:
        return a, handle

    def maybe(a: int, handle: Handle | None = None) -> tuple[int, Handle | None]:
        return a, handle

    function = maybe if optional else plain
    signature = read_signature(function, inject=Handle)
    assert list(properties(signature)) == ["a"]
    handle = Handle()
    _, by_name = signature.bind(signature.model.model_validate({"a": 1}), {"handle": handle})
    assert function(**by_name) == (1, handle)


def wait(seconds: float = Field(1.5, gt=0, description="How long.")) -> None:
    """Wait."""


def nothing() -> None: ...


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@logged
def add(a: int, b: int = 2) -> int:
    return a + b


class Shop:
    def buy(self, what: str) -> str:
        """Buy something.

        :param what: What to buy.
        """
        return what


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # A Field as default is a default and its limits.
        (wait, {"seconds": {"type": "number", "default": 1.5, "exclusiveMinimum": 0, "description": "How long."}}),
        (nothing, {}),
        # What a decorator wraps is read through it, and a bound method without its object.
        (add, {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}}),
        (Shop().buy, {"what": {"type": "string", "description": "What to buy."}}),
    ],
)
def test_a_function_of_any_make_is_read_and_refuses_what_is_no_parameter(
    function: Callable[..., Any], expected: Any
) -> None:
    signature = read_signature(function)
    assert properties(signature) == expected
    with pytest.raises(ValidationError):
        signature.model.model_validate({"a": 1, "what": "x", "more": 1})


def untyped(a, b: int = 1) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 it is what is tested
    """Not said what `a` is."""


def collecting(*names: str) -> None: ...


def collecting_by_name(**options: str) -> None: ...


def calling(back: Callable[[], None], a: int = 1) -> None: ...


def holding(ok: int, handle: Handle) -> None: ...


def not_looked_up(amount: Decimal) -> None: ...


class Methods:
    def method(self, a: int) -> None: ...


REFUSED: list[tuple[Callable[..., Any], list[str]]] = [
    (untyped, ["untyped()", "'a'", "annotate"]),
    (collecting, ["collecting()", "*names"]),
    (collecting_by_name, ["collecting_by_name()", "**options"]),
    (calling, ["calling()", "'back'"]),
    (holding, ["holding()", "'handle'"]),
    (not_looked_up, ["not_looked_up()", "Decimal", "TYPE_CHECKING"]),
    (Methods.method, ["Methods.method()", "'self'", "bound"]),
    (functools.partial(collecting, "x"), ["not a function"]),
]


@pytest.mark.parametrize(
    ("function", "names"), REFUSED, ids=lambda value: value.__name__ if hasattr(value, "__name__") else ""
)
def test_a_parameter_that_can_not_be_described_is_named(function: Callable[..., Any], names: list[str]) -> None:
    with pytest.raises(SchemaError) as caught:
        read_signature(function)
    for name in names:
        assert name in str(caught.value)


def test_local_names_are_looked_up_where_they_are_given() -> None:
    class Local(BaseModel):
        a: int

    def take(local: Local) -> None: ...

    with pytest.raises(SchemaError, match="Local"):
        read_signature(take)
    assert "local" in properties(read_signature(take, names={"Local": Local}))
