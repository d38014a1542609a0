"""Errors as they travel: `application/problem+json` (RFC 9457), and back to the class that was raised.

Above: the server, which turns what a handler raises into a problem in one place, and the client, which raises it again.
Below: `agentcore.errors`. An error that is not in the table says nothing about itself: its text could hold anything.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from agentcore import errors
from agentcore._text import already_masked, replace_lone_surrogates
from agentcore._value import Value, is_too_deep
from agentcore.errors import AgentcoreError, ModelConnectionError, NotAuthorized, RunError, ServerError, TooManyRequests
from agentcore.usage import Usage

Mask = Callable[[str], str]
"""Replaces secrets in a text."""


class FieldProblem(Value):
    """A part of a request that does not fit."""

    model_config = ConfigDict(extra="ignore")

    loc: tuple[str | int, ...]
    msg: str


class Problem(Value):
    """An error as a server tells it."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    detail: str
    """For people."""
    code: str
    """For programs: the class of the error, in snake case."""
    errors: tuple[FieldProblem, ...] = ()
    request_id: str | None = None
    data: dict[str, JsonValue] = {}
    """The attributes of the error."""


class _Row(NamedTuple):
    error: type[Exception]
    status: int
    data: Mapping[str, Any] = {}
    """The attributes that travel, with their types."""


_OF_MODELS: Final[Mapping[str, Any]] = {
    "model": str | None,
    "status": int | None,
    "retry_after": float | None,
    "request_id": str | None,
}
_ID: Final[Mapping[str, Any]] = {"conversation_id": str}

_ROWS: Final = (
    _Row(errors.AgentcoreError, 500),
    _Row(errors.StoreError, 500),
    _Row(errors.ConversationNotFound, 404, _ID),
    _Row(errors.ConversationExists, 409, _ID),
    _Row(errors.ConversationLocked, 409, {**_ID, "holder": str}),
    _Row(errors.LogDamaged, 500, {"path": str, "line": int, "reason": str}),
    _Row(errors.BlobLost, 500, {"digest": str}),
    _Row(errors.LogReadOnly, 409, _ID),
    _Row(errors.SeqConflict, 409, {"expected": int, "found": int}),
    _Row(errors.ConversationError, 409),
    _Row(errors.ConversationClosed, 409),
    _Row(errors.RunError, 500),
    _Row(errors.ReentrantCall, 409),
    _Row(errors.LimitReached, 409, {"code": str}),
    _Row(errors.NothingPending, 409),
    _Row(errors.AnswerRefused, 422),
    _Row(errors.RewindRefused, 409, {"nearest": int | None}),
    _Row(errors.NotRecorded, 409, {"missing": tuple[str, ...]}),
    _Row(errors.WorkspaceNotRestored, 409),
    # A model that fails is behind the server: never 401 or 429, which are about the client's own key.
    _Row(errors.ModelError, 502, _OF_MODELS),
    _Row(errors.AuthenticationError, 502, _OF_MODELS),
    _Row(errors.RateLimited, 503, _OF_MODELS),
    _Row(errors.ContextWindowExceeded, 502, _OF_MODELS),
    _Row(errors.ContentPolicy, 502, _OF_MODELS),
    _Row(errors.BadRequest, 502, _OF_MODELS),
    _Row(errors.MalformedHistory, 502, _OF_MODELS),
    _Row(errors.ModelTimeout, 504, _OF_MODELS),
    _Row(errors.ModelUnavailable, 503, _OF_MODELS),
    _Row(errors.ModelConnectionError, 502, _OF_MODELS),
    _Row(errors.StructuredOutputError, 502, {**_OF_MODELS, "problems": str, "text": str, "usage": Usage | None}),
    _Row(errors.ScriptExhausted, 502, _OF_MODELS),
    _Row(errors.InvalidCondensation, 422),
    _Row(errors.AddressNotAllowed, 422, {"model": str, "address": str}),
    _Row(errors.MediaError, 422),
    _Row(errors.SchemaError, 422),
    _Row(errors.ToolError, 422),
    _Row(errors.ToolArgumentsError, 422, {"tool_name": str, "problems": tuple[str, ...]}),
    _Row(errors.QuestionDeclined, 409),
    _Row(errors.MCPCallLost, 502),
    _Row(errors.MCPServerError, 502),
    _Row(errors.ToolNotFound, 422, {"tool_name": str}),
    _Row(errors.ToolNameTaken, 422, {"tool_name": str}),
    _Row(errors.MCPFileError, 422),
    _Row(errors.WorkspaceError, 409),
    _Row(errors.WorkspaceNotOpen, 409),
    _Row(errors.WorkspaceLost, 503, {"reason": str}),
    _Row(errors.PathError, 409, {"path": str, "reason": str}),
    _Row(errors.NotARepository, 409),
    _Row(errors.WireError, 502),
    _Row(errors.ConnectionLost, 502, {"url": str}),
    _Row(errors.MissingExtra, 501, {"extra": str}),
    _Row(errors.SecretError, 422),
    _Row(errors.UnsupportedPlatform, 501),
    # A caller's, as the same call raises them in process.
    _Row(ValueError, 422),
    _Row(TypeError, 422),
    _Row(TimeoutError, 504),
)
_PATH_STATUS: Final = {"missing": 404, "denied": 403, "too_large": 413, "invalid": 422}
_CALLERS: Final = (ValueError, TypeError, TimeoutError)


def code_of(name: str) -> str:
    """Return the code of an error by the name of its class."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_BY_CLASS: Final[Mapping[type[BaseException], _Row]] = {row.error: row for row in _ROWS}
_BY_CODE: Final = {code_of(row.error.__name__): row for row in _ROWS}


def problem_of(error: BaseException, *, request_id: str | None = None, mask: Mask = already_masked) -> Problem:
    """Return an error as a problem.

    Args:
        error: What was raised. One that is none of agentcore's, and no ValueError, TypeError or TimeoutError itself (a
            class that a library derives of them is another one), is `internal_error`, without a word of its own.
        request_id: The id of the request.
        mask: Replaces secrets in its text and attributes.
    """
    if isinstance(error, ServerError):
        retry = {"retry_after": error.retry_after} if isinstance(error, TooManyRequests) else {}
        return _problem(
            error.status, error.code, _clean(str(error), mask), request_id=error.request_id or request_id, data=retry
        )
    if isinstance(error, ValidationError):
        return _problem_of_fields(error, request_id)
    row = _find_row(error)
    if row is None:
        return _problem(500, "internal_error", "The server failed. Its log says why.", request_id=request_id)
    status = _PATH_STATUS.get(error.reason, row.status) if isinstance(error, errors.PathError) else row.status
    data = {name: _plain(getattr(error, name), mask) for name in row.data}
    if isinstance(error, ModelConnectionError):
        data["refused"] = error.refused
    elif isinstance(error, RunError):
        data["result"] = _dump_result(error.result, mask)
        data["error"] = problem_of(error.error, mask=mask).model_dump(mode="json", exclude={"request_id", "type"})
    return _problem(status, code_of(row.error.__name__), _clean(str(error), mask), request_id=request_id, data=data)


def error_of(problem: Problem, *, make_result: Callable[[Any], Any] | None = None) -> Exception:
    """Return the error that a problem tells of, to be raised; one without a class is a `ServerError`.

    Args:
        problem: The problem.
        make_result: Makes the result of a `RunError` of its JSON; by default it stays JSON.
    """
    row = _BY_CODE.get(problem.code)
    if row is None or problem.status in (401, 429):
        return _server_error(problem)
    try:
        values = {name: _read(type_, problem.data.get(name)) for name, type_ in row.data.items()}
    except ValidationError:
        return _server_error(problem)  # of another version, which tells it differently
    error = _make(row.error, problem.detail, values)
    if isinstance(error, ModelConnectionError) and problem.data.get("refused") is True:
        error.__cause__ = ConnectionRefusedError("refused, as the server says")
    elif isinstance(error, RunError):
        result = problem.data.get("result")
        error.result = result if make_result is None or result is None else make_result(result)
        error.error = _inner_error(problem.data.get("error"))
        if not isinstance(error.error, AgentcoreError):
            error.__cause__ = error.error
    return error


def _find_row(error: BaseException) -> _Row | None:
    if isinstance(error, AgentcoreError):
        # A program's own class arrives as the one that it is derived of.
        return next(_BY_CLASS[cls] for cls in type(error).__mro__ if cls in _BY_CLASS)
    return _BY_CLASS[type(error)] if type(error) in _CALLERS else None


def _problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: tuple[FieldProblem, ...] = (),
    request_id: str | None = None,
    data: Mapping[str, JsonValue] | None = None,
) -> Problem:
    title = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Error"
    data = dict(data or {})
    return Problem(
        title=title, status=status, detail=detail, code=code, errors=errors, request_id=request_id, data=data
    )


def _problem_of_fields(error: ValidationError, request_id: str | None) -> Problem:
    """Return what does not fit: names, and no values, which could be secret."""
    details: list[Any] = error.errors(include_url=False, include_context=False, include_input=False)
    found = tuple(FieldProblem(loc=_clean_loc(each["loc"]), msg=_message(each)) for each in details[:100])
    lines = "; ".join(f"{'.'.join(map(str, each.loc)) or 'body'}: {each.msg}" for each in found[:10])
    return _problem(422, "value_error", f"The request does not fit. {lines}", errors=found, request_id=request_id)


def _message(detail: Any) -> str:
    # Its own words repeat what was sent.
    return "It is none of the kinds that are known here." if detail["type"] == "union_tag_invalid" else detail["msg"]


def _clean_loc(loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    return tuple(replace_lone_surrogates(part[:100]) if isinstance(part, str) else part for part in loc)


def _clean(text: str, mask: Mask) -> str:
    return cast("str", replace_lone_surrogates(mask(text)))


def _plain(value: Any, mask: Mask) -> JsonValue:
    """Return an attribute as JSON, its strings masked."""
    match value:
        case str():
            return _clean(value, mask)
        case None | bool() | int() | float():
            return value
        case BaseModel():
            return _plain(value.model_dump(mode="json"), mask)
        case Mapping():
            return {str(key): _plain(each, mask) for key, each in cast("Mapping[Any, Any]", value).items()}
        case list() | tuple():
            return [_plain(each, mask) for each in cast("list[Any]", value)]
        case _:
            return _clean(str(value), mask)


def _dump_result(result: Any, mask: Mask) -> JsonValue:
    if not isinstance(result, BaseModel):
        return None
    try:
        # The live output is not masked, and need not be JSON: the log has it, as the arguments of the call that made it.
        dumped = result.model_dump(mode="json", exclude={"output"})
    except PydanticSerializationError:
        return None
    return None if is_too_deep(dumped) else _plain(dumped, mask)


def _read(type_: Any, value: JsonValue) -> Any:
    return TypeAdapter[Any](type_).validate_python(value)


def _make(cls: type[Exception], text: str, values: Mapping[str, Any]) -> Exception:
    """Make an error of its text: its own `__init__` would write another sentence around it."""
    error = cls.__new__(cls, text)
    builtin = next(base for base in cls.__mro__ if base.__module__ == "builtins")
    cast("Any", builtin).__init__(error, text)
    for name, value in values.items():
        setattr(error, name, value)
    return error


def _inner_error(data: JsonValue) -> Exception:
    try:
        return error_of(Problem.model_validate(data))
    except ValidationError:
        return ServerError("The server did not say what was raised.", status=500, code="internal_error")


def _server_error(problem: Problem) -> ServerError:
    detail = problem.detail or problem.title
    if problem.status == 429:
        after = problem.data.get("retry_after")
        return TooManyRequests(
            detail,
            code=problem.code,
            request_id=problem.request_id,
            retry_after=after if isinstance(after, int | float) else None,
        )
    cls = NotAuthorized if problem.status in (401, 403) else ServerError
    return cls(detail, status=problem.status, code=problem.code, request_id=problem.request_id)
