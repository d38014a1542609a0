"""The base of every value that is said, sent or stored.

Below: pydantic. Above: everything. A `Value` never changes; changing one means making another with `model_copy`.
Making one refuses every name that is not a field's, with the name that was meant; reading one (`model_validate`) is
tolerant where its class is `Recorded`.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, cast, final

from pydantic import BaseModel, ConfigDict, ValidationError

from agentcore._arguments import refuse_unknown

DEEPEST: Final = 100
"""How deeply JSON may be nested. pydantic gives up at 255, and what walks through it in Python needs a stack that is left."""


def is_too_deep(value: object) -> bool:
    """Return whether lists and objects of a JSON value are nested more deeply than `DEEPEST`."""
    level: list[Any] = [value] if isinstance(value, list | dict) else []
    for _ in range(DEEPEST):
        level = [
            part
            for each in level
            for part in (cast("dict[str, Any]", each).values() if isinstance(each, dict) else each)
            if isinstance(part, list | dict)
        ]
        if not level:
            return False
    return True


class Value(BaseModel):
    """A frozen model that refuses fields it does not know."""

    # defer_build: a schema is built when a class is first used, so that importing agentcore stays cheap.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    positional_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that may be given without their names, in order."""

    def __init__(self, /, *args: Any, **fields: Any) -> None:
        """Make it of its fields.

        Raises:
            TypeError: One of them is none of its fields.
            ValidationError: A value does not fit its field.
        """
        if args:
            fields = self._name_positional(args, fields)
        try:
            super().__init__(**fields)
        except ValidationError as error:
            unknown = next((each["loc"][0] for each in _details(error) if _is_unknown(each)), None)
            if unknown is None:
                raise
        else:
            if not self.__pydantic_extra__:
                return
            unknown = next(iter(self.__pydantic_extra__))
        refuse_unknown(type(self).__name__, str(unknown), self._field_names())

    # As pydantic marks its own: what is read, and not made by a program, is not to pass through here.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]

    def _name_positional(self, args: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
        names = self.positional_fields
        if len(args) <= len(names) and not (set(names[: len(args)]) & fields.keys()):
            return {**dict(zip(names, args, strict=False)), **fields}
        but = f", except `{names[0]}`" if names else ""
        example = next((name for name in self._field_names() if name not in {"name", "kind", *names}), "name")
        owner = type(self).__name__
        raise TypeError(f"{owner} takes its arguments by name{but}, as in {owner}({example}=...).")

    @classmethod
    def _field_names(cls) -> list[str]:
        return [field.alias or name for name, field in cls.model_fields.items()]


class Recorded(Value):
    """A value that is kept on disk: fields that a newer version wrote are kept as they are, and written back."""

    # NaN and the infinities, which JSON has no word for, stay visible: left to itself, pydantic writes them as null.
    model_config = ConfigDict(extra="allow", ser_json_inf_nan="constants")

    # Most are made by agentcore itself, many for each step. One that programs make takes `Value.__init__` back.
    __init__ = BaseModel.__init__


@final
class _VerbatimMark:
    """Marks a field in which secrets are never looked for."""


VERBATIM: Final = _VerbatimMark()

Verbatim = Annotated[str, VERBATIM]
"""A string that is stored as it is: an id, a kind, a signature, base64 media. Masking never touches it."""


def _details(error: ValidationError) -> list[Any]:
    return error.errors(include_url=False, include_input=False, include_context=False)


def _is_unknown(detail: Any) -> bool:
    """Return whether a detail of an error is about a name that is not a field's, at the top."""
    return detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1
