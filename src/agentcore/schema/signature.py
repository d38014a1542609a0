"""The arguments of a typed function, as a model and with their descriptions.

Above: `tool`, which adds what it means to call the function. This is not it: nothing here is ever called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo

from agentcore._value import Value
from agentcore.errors import SchemaError
from agentcore.schema.plain import schema_of

if TYPE_CHECKING:
    from docstring_parser import Docstring

# A docstring may begin with its parameters; the parser needs a first sentence to find them.
_FIRST = "_"


class Described(NamedTuple):
    """A docstring, taken apart."""

    text: str = ""
    """The description of the function, its result and examples, without its parameters and errors."""
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


_NO_PARAMETERS = "a model gives arguments by name, so each needs a name and a type of its own"


class Signature(NamedTuple):
    """The parameters of a function."""

    function: Callable[..., Any]
    text: str
    """The docstring without its parameters."""
    model: type[BaseModel]
    """The arguments. Its fields have the names of the parameters, as aliases where a model can't have such a field."""
    schema: dict[str, JsonValue]
    """The plain schema of the model."""
    injected: tuple[str, ...]
    """The parameters that the caller fills in, and that are not in the model."""
    places: tuple[tuple[str, str, bool], ...]
    """Parameter, field, and whether it can be given by its place only."""

    def bind(self, arguments: BaseModel, injected: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the keyword arguments to call the function with."""
        by_place: list[Any] = []
        by_name: dict[str, Any] = {}
        for parameter, field, only_by_place in self.places:
            value = injected[parameter] if parameter in self.injected else getattr(arguments, field)
            if only_by_place:
                by_place.append(value)
            else:
                by_name[parameter] = value
        return by_place, by_name


def read_signature(
    function: Callable[..., Any],
    *,
    inject: type | None = None,
    base: type[BaseModel] = Value,
    names: Mapping[str, Any] | None = None,
) -> Signature:
    """Read the parameters of a function into a model.

    Descriptions come from `Annotated[..., Field(description=...)]`, else from the docstring. Parameters annotated with
    `inject` are left out. `names` are local names that annotations may use.

    Raises:
        SchemaError: a parameter has no type, collects others (`*args`), or has a type that JSON can't say.
    """
    name: str = getattr(function, "__qualname__", repr(function))
    hints = _hints(function, name, names)
    described = read_docstring(function.__doc__)
    definitions: dict[str, tuple[Any, Any]] = {}
    injected: list[str] = []
    fields: list[tuple[str, str, bool]] = []
    for parameter in inspect.signature(function).parameters.values():
        _check(parameter, hints, name)
        annotation = hints[parameter.name]
        only_by_place = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        if inject is not None and any(_is_of(inject, each) for each in (annotation, *get_args(annotation))):
            injected.append(parameter.name)
            fields.append((parameter.name, parameter.name, only_by_place))
            continue
        field, alias = _field_name(parameter.name, base)
        definitions[field] = _definition(parameter, annotation, alias, described.parameters.get(parameter.name))
        fields.append((parameter.name, field, only_by_place))
    model = _model(name, base, function.__module__, definitions)
    try:
        schema = schema_of(model)
    except SchemaError as error:
        raise _culprit(name, definitions, fields) or error from error
    return Signature(function, described.text, model, schema, tuple(injected), tuple(fields))


def _is_of(kind: type, annotation: Any) -> bool:
    return annotation is kind or get_origin(annotation) is kind


def _hints(function: Callable[..., Any], name: str, names: Mapping[str, Any] | None) -> dict[str, Any]:
    if not inspect.isroutine(function):
        raise SchemaError(f"{function!r} is not a function: pass a function or a bound method.")
    try:
        return get_type_hints(function, localns=dict(names or {}), include_extras=True)
    except NameError as error:
        raise SchemaError(
            f"{name}() has an annotation that can't be looked up: {error}. "
            "Import that name where the function is defined, outside `if TYPE_CHECKING`."
        ) from error


def _check(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> None:
    if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise SchemaError(f"{name}() takes {stars}{parameter.name}, but {_NO_PARAMETERS}.")
    if parameter.name in hints:
        return
    if parameter.name in {"self", "cls"}:
        raise SchemaError(
            f"{name}() takes {parameter.name!r}: it is a method that is bound to nothing. Pass a bound one."
        )
    raise SchemaError(f"{name}() does not say the type of its parameter {parameter.name!r}: annotate it.")


def _field_name(parameter: str, base: type[BaseModel]) -> tuple[str, str | None]:
    if parameter.startswith(("_", "model_")) or hasattr(base, parameter):
        return f"argument_{parameter.strip('_')}_{len(parameter)}", parameter
    return parameter, None


def _definition(
    parameter: inspect.Parameter, annotation: Any, alias: str | None, sentence: str | None
) -> tuple[Any, Any]:
    default: Any = ... if parameter.default is inspect.Parameter.empty else parameter.default
    own = [default] if isinstance(default, FieldInfo) else []
    if get_origin(annotation) is Annotated:
        own += [part for part in annotation.__metadata__ if isinstance(part, FieldInfo)]
    extra: dict[str, Any] = {}
    if alias is not None and not any(info.alias for info in own):
        extra["alias"] = alias
    if sentence is not None and not any(info.description for info in own):
        extra["description"] = sentence
    # The last one wins where two say the same, and what only one says is kept.
    return (Annotated[annotation, Field(**extra)] if extra else annotation), default


def _model(name: str, base: type[BaseModel], module: str, definitions: dict[str, tuple[Any, Any]]) -> type[BaseModel]:
    class Arguments(base):
        # There is no source to look for attribute docstrings in, and looking would read files.
        model_config = ConfigDict(serialize_by_alias=True, use_attribute_docstrings=False)

    title = "".join(part[:1].upper() + part[1:] for part in name.rsplit(".", 1)[-1].split("_"))
    model = create_model(
        title or "Arguments", __base__=Arguments, __module__=module, **cast("dict[str, Any]", definitions)
    )
    model.__doc__ = None
    return model


def _culprit(
    name: str, definitions: Mapping[str, tuple[Any, Any]], fields: list[tuple[str, str, bool]]
) -> SchemaError | None:
    parameters = {field: parameter for parameter, field, _ in fields}
    for field, (annotation, _) in definitions.items():
        try:
            TypeAdapter(annotation).json_schema()
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            reason = str(error).split("\n", 1)[0]
            return SchemaError(f"{name}() takes {parameters[field]!r} of a type that JSON can't say: {reason}")
    return None
