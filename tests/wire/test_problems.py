"""Errors there and back: each public class as itself, with its text and attributes, and without anything secret."""

from __future__ import annotations

import inspect
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from agentcore import Limits, RunResult, errors
from agentcore.conversation import RunFailure
from agentcore.errors import (
    AgentcoreError,
    LogDamaged,
    ModelConnectionError,
    NotAuthorized,
    PathError,
    RateLimited,
    RunError,
    ServerError,
    ToolError,
    TooManyRequests,
)
from agentcore.events import ConversationStatus
from agentcore.usage import Usage
from agentcore.wire import Problem, error_of, problem_of

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, AgentcoreError)]
OF_MODEL = {"model": "m", "status": 529, "retry_after": 1.5, "request_id": "req_1"}
USAGE = Usage(requests=2, input_tokens=7, known_cost=Decimal("0.25"))

ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "ConversationNotFound": (("c", "the store"), {}),
    "ConversationExists": (("c", "the store"), {}),
    "ConversationLocked": (("c", "process 7"), {}),
    "LogDamaged": (("log.jsonl", 3, "it is torn", "agentcore log repair c"), {}),
    "BlobLost": (("the store", "abc", "is missing."), {}),
    "LogReadOnly": (("c", "it is newer"), {}),
    "SeqConflict": (("c", 3, 4), {}),
    "ConversationClosed": (("c",), {}),
    "ReentrantCall": (("run",), {}),
    "LimitReached": (("cost", "The budget is used up."), {}),
    "NothingPending": ((["ev_1"], ["ev_2"]), {}),
    "RewindRefused": (("Event 3 is in a batch.", 2), {}),
    "NotRecorded": (("c", ["the model", "the tool 'x'"]), {}),
    "ScriptExhausted": ((2,), {}),
    "StructuredOutputError": (("City", "- name: missing", "no idea", "m", USAGE), {}),
    "AddressNotAllowed": (("m", "http://10.0.0.1", "MODEL_URL"), {}),
    "ToolArgumentsError": (("weather", ["city: missing"], "{}", '{"city": "string"}'), {}),
    "ToolNotFound": (("weather", "no module"), {}),
    "ToolNameTaken": (("weather", "The agent", "the toolset 'x'"), {}),
    "WorkspaceNotOpen": (("LocalWorkspace('/')",), {}),
    "PathError": (("a/b", "missing", "No such file: a/b."), {}),
    "NotARepository": (("/srv",), {}),
    "MissingExtra": (("The server", "serve"), {}),
    "UnsupportedPlatform": (("win32",), {}),
    "WorkspaceLost": (("The container was removed.",), {"reason": "removed"}),
    "ConnectionLost": (("http://host", "no answer for 300 s"), {}),
    "ServerError": (("It failed.",), {"status": 500, "code": "internal_error", "request_id": "r"}),
    "NotAuthorized": (("A key is needed.",), {"status": 401, "code": "not_authorized", "request_id": "r"}),
    "TooManyRequests": (("Too many.",), {"request_id": "r", "retry_after": 2.5}),
    "RunError": (
        (
            "The step failed: overloaded",
            RunResult(status=ConversationStatus.ERROR, error=RunFailure(code="RateLimited", detail="overloaded")),
            RateLimited("overloaded", model="m", status=429, retry_after=1.5, request_id="req_1"),
        ),
        {},
    ),
}


def make(cls: type[AgentcoreError]) -> AgentcoreError:
    """Make an error of the class, with every attribute that it can have."""
    if cls.__name__ in ARGUMENTS:
        positional, named = ARGUMENTS[cls.__name__]
        return cls(*positional, **named)
    made: Any = cls
    return made("It went wrong.", **OF_MODEL) if issubclass(cls, errors.ModelError) else made("It went wrong.")


def travel(error: BaseException, **options: Any) -> Any:
    """Send an error as JSON and read it."""
    return error_of(Problem.model_validate_json(problem_of(error).model_dump_json()), **options)


def attributes(error: BaseException) -> dict[str, Any]:
    """Return the public attributes of an error, properties and attributes of its class included."""
    names = [name for name in dir(error) if not name.startswith("_")]
    return {name: value for name in names if not callable(value := getattr(error, name)) and name not in NOT_COMPARED}


NOT_COMPARED = {"result", "error", "args"}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_public_error_arrives_as_itself(cls: type[AgentcoreError]) -> None:
    error = make(cls)
    arrived = travel(error)
    assert type(arrived) is cls
    assert str(arrived) == str(error)
    assert attributes(arrived) == attributes(error)
    assert {name: type(value) for name, value in vars(arrived).items()} == {
        name: type(value) for name, value in vars(error).items() if name not in NOT_COMPARED
    } | ({"result": dict, "error": RateLimited} if cls is RunError else {})


@pytest.mark.parametrize("error", [ValueError("no"), TypeError("no"), TimeoutError("late")], ids=repr)
def test_a_callers_error_arrives_as_itself(error: Exception) -> None:
    arrived = travel(error)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)


def test_the_result_and_error_of_a_run_arrive_with_it() -> None:
    error = make(RunError)
    assert isinstance(error, RunError)
    arrived = travel(error, make_result=RunResult.model_validate)
    assert arrived.result == error.result
    assert isinstance(arrived.error, RateLimited)
    assert attributes(arrived.error) == attributes(error.error)
    assert arrived.__cause__ is None


def test_an_unknown_error_of_a_run_arrives_without_its_text_and_as_the_cause() -> None:
    inner = KeyError("hunter2")
    arrived = travel(RunError("The step failed.", RunResult(status=ConversationStatus.ERROR), inner))
    assert isinstance(arrived.error, ServerError)
    assert "hunter2" not in repr(problem_of(inner))
    arrived = travel(RunError("The step failed.", None, ValueError("no")))
    assert (arrived.result, str(arrived.error)) == (None, "no")
    assert arrived.__cause__ is arrived.error


def test_the_live_output_of_a_run_does_not_travel_with_its_error() -> None:
    result = RunResult(status=ConversationStatus.ERROR, output={"token": "hunter2"})
    assert "hunter2" not in problem_of(RunError("no", result, ValueError("no"))).model_dump_json()


def test_a_refused_connection_is_one_there_as_well() -> None:
    error = ModelConnectionError("nothing listens")
    error.__cause__ = ConnectionRefusedError()
    assert travel(error).refused
    assert not travel(ModelConnectionError("it broke")).refused


def test_a_damaged_log_says_which_lines_are_sound() -> None:
    error = LogDamaged("log", 3, "torn", "repair")
    assert travel(error).sound == error.sound


def test_a_programs_own_class_arrives_as_the_one_it_is_derived_of() -> None:
    class TooHot(ToolError):
        def __init__(self, degrees: int) -> None:
            super().__init__(f"{degrees} degrees are too hot.")
            self.degrees = degrees

    arrived = travel(TooHot(99))
    assert (type(arrived), str(arrived)) == (ToolError, "99 degrees are too hot.")


def test_an_unknown_error_says_nothing_about_itself() -> None:
    class Careless(ValueError):
        pass

    group = ExceptionGroup("hunter2", [ValueError("hunter2")])
    for error in (RuntimeError("hunter2"), Careless("hunter2"), OSError(5, "hunter2"), group):
        problem = problem_of(error, request_id="r")
        assert (problem.status, problem.code, problem.request_id) == (500, "internal_error", "r")
        assert "hunter2" not in problem.model_dump_json()


def test_secrets_are_masked_in_every_text() -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "<secret>")

    result = RunResult(status=ConversationStatus.ERROR, text="it is hunter2")
    inner = errors.StructuredOutputError("City", "hunter2", "hunter2", "hunter2", None)
    for error in (PathError("hunter2", "missing", "hunter2"), inner, RunError("hunter2", result, inner)):
        text = problem_of(error, mask=mask).model_dump_json()
        assert "hunter2" not in text
        assert "<secret>" in text


class Body(BaseModel):
    """A request."""

    limits: Limits
    names: dict[str, int] = {}


def test_a_request_that_does_not_fit_is_told_field_by_field_without_what_was_sent() -> None:
    with pytest.raises(ValidationError) as caught:
        Body.model_validate({"limits": {"steps": "hunter2", "cost": -1}, "names": 7})
    problem = problem_of(caught.value, request_id="r_1")
    assert (problem.status, problem.code, problem.request_id) == (422, "value_error", "r_1")
    assert [each.loc for each in problem.errors] == [("limits", "steps"), ("limits", "cost"), ("names",)]
    assert "hunter2" not in problem.model_dump_json()
    assert isinstance(error_of(problem), ValueError)
    assert "limits.steps" in str(error_of(problem))


@pytest.mark.parametrize(
    ("status", "code", "cls"),
    [
        (401, "not_authorized", NotAuthorized),
        (403, "scope_missing", NotAuthorized),
        (429, "anything", TooManyRequests),
        (429, "rate_limited", TooManyRequests),
        (503, "draining", ServerError),
        (418, "from_the_future", ServerError),
    ],
)
def test_a_code_that_is_not_known_is_a_server_error_with_its_status(
    status: int, code: str, cls: type[ServerError]
) -> None:
    problem = Problem(title="?", status=status, detail="No.", code=code, request_id="r", data={"retry_after": 3})
    error = error_of(problem)
    assert isinstance(error, ServerError)
    assert type(error) is cls
    assert (error.status, error.code, str(error), error.request_id) == (status, code, "No.", "r")
    assert getattr(error, "retry_after", 3) == 3


@pytest.mark.parametrize("data", [{}, {"expected": "x", "found": []}, {"expected": 1}], ids=["none", "wrong", "some"])
def test_a_known_code_with_attributes_that_are_not_understood_is_a_server_error(data: dict[str, Any]) -> None:
    error = error_of(Problem(title="Conflict", status=409, detail="No.", code="seq_conflict", data=data))
    assert isinstance(error, ServerError)
    assert (error.status, error.code) == (409, "seq_conflict")


def test_the_status_of_a_path_is_by_its_reason() -> None:
    reasons = ["missing", "denied", "too_large", "invalid", "is_a_folder"]
    assert [problem_of(PathError("p", reason, "no")).status for reason in reasons] == [404, 403, 413, 422, 409]
    assert type(travel(PathError("p", "denied", "no"))) is PathError


def test_a_models_refusal_is_not_taken_for_the_servers_own() -> None:
    for cls in (errors.AuthenticationError, errors.RateLimited):
        assert problem_of(make(cls)).status not in (401, 403, 429)


@given(st.text(), st.text())
def test_any_text_can_be_sent(text: str, path: str) -> None:
    problem = problem_of(PathError(path, "missing", text))
    assert json.loads(problem.model_dump_json())["code"] == "path_error"
    arrived = error_of(Problem.model_validate_json(problem.model_dump_json()))
    assert isinstance(arrived, PathError)
    if text.isprintable():
        assert str(arrived) == text


def test_what_a_newer_server_adds_to_a_problem_is_passed_over() -> None:
    data = {**problem_of(ValueError("no")).model_dump(mode="json"), "hint": "later", "type": "about:blank"}
    assert str(error_of(Problem.model_validate(data))) == "no"
