"""Bodies of requests and responses: strict where they come in, tolerant where they come back, silent about secrets."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from pydantic import SecretStr, TypeAdapter, ValidationError

from agentcore import wire
from agentcore.wire import (
    ClientAgent,
    ConversationInfo,
    ConversationSpec,
    NewKey,
    RequestBody,
    ResponseBody,
    encode_body,
)
from agentcore.wire.workspaces import RunCommand

BODIES = [
    cls
    for _, cls in inspect.getmembers(wire, inspect.isclass)
    if issubclass(cls, RequestBody | ResponseBody) and cls not in (RequestBody, ResponseBody)
]

SPEC = ConversationSpec(
    agent=ClientAgent(record={"llm": {"model": "m", "extra": "hunter2"}}, model_key=SecretStr("hunter2")),
    secrets={"TOKEN": SecretStr("hunter2")},
    title="A title",
)


def test_secrets_are_shown_nowhere_but_on_the_connection() -> None:
    run = RunCommand(command="echo hunter2", env={"TOKEN": "hunter2"}, stdin=b"aHVudGVyMg==")
    assert "hunter2" not in f"{SPEC!r}{SPEC!s}{run!r}"
    hidden = ConversationSpec(secrets={"TOKEN": SecretStr("hunter2")})
    assert "hunter2" not in hidden.model_dump_json() + repr(hidden.model_dump())
    sent = json.loads(encode_body(SPEC))
    assert (sent["secrets"], sent["agent"]["model_key"]) == ({"TOKEN": "hunter2"}, "hunter2")
    assert ConversationSpec.model_validate_json(encode_body(SPEC)) == SPEC


def test_a_body_that_does_not_fit_is_refused_without_its_secrets() -> None:
    for body in (
        {"secrets": {"TOKEN": ["hunter2"]}},
        {"agent": {"record": {}, "model_key": {"k": "hunter2"}}},
        {"secrets": "hunter2"},
    ):
        with pytest.raises(ValidationError) as caught:
            ConversationSpec.model_validate_json(json.dumps(body))
        assert "hunter2" not in f"{caught.value}{wire.problem_of(caught.value)}"


@pytest.mark.parametrize(
    "body", [{"titel": "x"}, {"limits": {"stepz": 1}}, {"agent": {"record": {}, "key": "x"}}, {"tools": [{"x": 1}]}]
)
def test_an_unknown_field_of_a_request_is_refused_however_deep(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ConversationSpec.model_validate(body)


def test_an_unknown_field_of_a_response_is_passed_over() -> None:
    info = ConversationInfo.model_validate({"id": "c", "status": "idle", "mood": "fine"})
    assert info == ConversationInfo.model_validate({"id": "c", "status": "idle"})


def test_a_new_key_is_shown_on_the_connection_alone() -> None:
    key = NewKey.model_validate(
        {"id": "k", "owner": "ann", "scopes": ["read"], "created": "2026-01-01T00:00:00Z", "key": "ac_k_hunter2"}
    )
    assert "hunter2" not in repr(key)
    assert json.loads(encode_body(key))["key"] == "ac_k_hunter2"


@pytest.mark.parametrize("cls", BODIES, ids=lambda cls: cls.__name__)
def test_every_body_has_a_json_schema(cls: type[RequestBody | ResponseBody]) -> None:
    for mode in ("validation", "serialization"):
        assert TypeAdapter(cls).json_schema(mode=mode)["type"] == "object"
