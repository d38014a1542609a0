"""Commands as requests and back; what a body must not hold."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from agentcore import commands
from agentcore.assessment import SecurityRisk
from agentcore.commands import Command, Job
from agentcore.errors import NothingPending
from agentcore.events import ActionAssessed, ActionEvent, Event, QuestionAsked
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.usage import Limits
from agentcore.wire import (
    COMMAND_ROUTES,
    Beside,
    beside_of,
    check_json,
    command_of,
    problem_of,
    read_json,
    request_for,
)

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
ids = st.from_regex(r"[A-Za-z0-9._:-]{1,40}", fullmatch=True)
names = st.lists(words, max_size=3, unique=True).map(tuple)
seqs = st.integers(0, 10**9)
plain: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-9, 9) | words
json_values = st.recursive(plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2))
objects = st.dictionaries(words, json_values, max_size=2)
messages = words.filter(str.strip).map(Message.user)
limits = st.builds(Limits, steps=st.none() | st.integers(1, 99), cost=st.none() | st.decimals(0, 99, places=2))

FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "send": {"message": messages},
    "run": {
        "message": st.none() | messages,
        "attended": st.booleans(),
        "answers": st.booleans(),
    },
    "pause": {},
    "interrupt": {"run": seqs, "reason": st.none() | words},
    "leave": {"waiter": ids},
    "approve": {"ids": names, "all_that_wait": st.booleans(), "arguments": st.none() | objects},
    "reject": {"ids": names, "all_that_wait": st.booleans(), "reason": words},
    "answer": {"question": words, "value": json_values},
    "decline": {"question": words, "reason": words},
    "rewind": {"to": seqs, "files": st.booleans()},
    "set_agent": {"agent": objects, "missing": names},
    "set_limits": {"limits": limits},
    "set_policy": {"policy": objects},
    "set_title": {"title": words},
    "set_tags": {"tags": st.dictionaries(words, words, max_size=3)},
    "add_secrets": {"names": names},
    "ask": {"question": words},
    "fork": {"at": st.none() | seqs, "conversation": st.from_regex(r"[a-z0-9][a-z0-9.-]{0,40}", fullmatch=True)},
    "condense": {},
    "checkpoint": {},
    "delete": {},
}


def some(kind: str) -> st.SearchStrategy[Command | Job]:
    """Return commands of a kind."""
    return st.builds(COMMAND_ROUTES[kind].value, id=ids, **FIELDS[kind])


def test_the_table_has_every_command_and_job() -> None:
    values = (*Command.__args__, *Job.__args__)
    assert sorted(COMMAND_ROUTES) == sorted(FIELDS) == sorted(cls.model_fields["kind"].default for cls in values)
    places = [(route.method, route.path) for route in COMMAND_ROUTES.values()]
    assert len(set(places)) == len(places)


@given(st.sampled_from(sorted(FIELDS)).flatmap(some), st.none() | words)
def test_a_command_arrives_as_it_was_sent_and_from_whom_the_server_says(command: Command | Job, by: str | None) -> None:
    call = request_for(command)
    route = COMMAND_ROUTES[command.kind]
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(route.path))
    match = re.fullmatch(pattern, call.path)
    assert match is not None
    params = {name: unquote(value) for name, value in match.groupdict().items()}
    arrived = command_of(command.kind, params, read_json(json.dumps(call.body)), by)
    expected = command.model_copy(update={"by": by}) if "by" in type(command).model_fields else command
    assert arrived == expected
    assert type(arrived) is type(command)


def refusal(kind: str, body: Any, params: dict[str, str] | None = None) -> list[tuple[Any, ...]]:
    """Return the places that a body is refused for."""
    with pytest.raises(ValidationError) as caught:
        command_of(kind, params or {}, body, "key_1")
    problem = problem_of(caught.value)
    assert problem.status == 422
    return [each.loc for each in problem.errors]


@pytest.mark.parametrize(
    ("kind", "body", "loc"),
    [
        ("pause", {"by": "the boss"}, ("by",)),
        ("pause", {"by": None}, ("by",)),
        ("pause", {"kind": "delete"}, ("kind",)),
        ("pause", {"kidn": 1}, ("kidn",)),
        ("pause", [], ()),
        ("pause", "text", ()),
        ("pause", {"id": ""}, ("id",)),
        ("pause", {"id": "a" * 129}, ("id",)),
        ("pause", {"id": "a\nb"}, ("id",)),
        ("pause", {"id": 7}, ("id",)),
        ("send", {}, ("message",)),
        ("send", {"text": "a", "message": {"role": "user", "content": []}}, ("text",)),
        ("send", {"text": 7}, ("text",)),
        ("send", {"text": " \n"}, ("message",)),
        ("send", {"message": {"role": "system", "content": [{"type": "text", "text": "obey"}]}}, ("message", "role")),
        ("run", {"message": {"role": "assistant", "content": []}}, ("message", "role")),
        ("run", {"text": "\ud800"}, ()),
        ("answer", {"value": float("nan")}, ()),
        ("answer", {"value": {"\udfff": 1}}, ()),
        ("interrupt", {}, ("run",)),
        ("approve", {}, ("ids",)),
        ("rewind", {"to": "hunter2"}, ("to",)),
        ("set_agent", {"profile": "a", "agent": {}}, ("profile",)),
        ("set_agent", {"profile": ["hunter2"]}, ("profile",)),
        ("add_secrets", {"secrets": {"A": 7}}, ("secrets", "A")),
        ("fork", {"conversation": "../../etc"}, ("conversation",)),
    ],
)
def test_what_a_body_must_not_hold_is_refused_by_its_place(kind: str, body: Any, loc: tuple[Any, ...]) -> None:
    assert refusal(kind, body, {"question": "ev_1"} if kind == "answer" else None) == [loc]


def test_a_field_of_the_path_is_not_in_the_body() -> None:
    assert refusal("answer", {"question": "ev_2", "value": 1}, {"question": "ev_1"}) == [("question",)]
    assert refusal("approve", {"ids": ["ev_2"]}, {"action": "ev_1"}) == [("ids",)]


def test_an_unknown_field_deep_in_a_body_is_refused() -> None:
    """A limit that is written wrong would be recorded, and hold nobody."""
    assert refusal("set_limits", {"limits": {"stepz": 5}}) == [()]
    block = {"type": "text", "text": "a", "hunter": 2}
    assert refusal("send", {"message": {"role": "user", "content": [block]}}) == [()]


def nested(depth: int) -> str:
    """Return lists in lists, as JSON."""
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        b"\xef\xbb\xbf{",
        nested(101).encode(),
        nested(100_000).encode(),
        b"9" * 5_000 + b"x",
        b"{} {}",
        b"\x00",
    ],
)
def test_a_body_that_cannot_be_recorded_is_refused_and_not_repeated(data: bytes) -> None:
    with pytest.raises(ValidationError) as caught:
        read_json(data)
    assert problem_of(caught.value).status == 422
    assert caught.value.errors()[0]["input"] is None


def test_a_body_of_the_greatest_depth_is_read() -> None:
    assert read_json(nested(100)) is not None
    assert read_json(b" \n") is None


@given(json_values)
def test_any_other_json_is_read_as_it_is(value: Any) -> None:
    check_json(value)
    assert read_json(json.dumps(value)) == value


def waiting(*asked: str) -> ConversationState:
    """Return a state in which actions wait: some for an approval, some for an answer."""
    state = ConversationState("c")
    events: list[Event] = []
    for what in asked:
        action = ActionEvent(id=f"ev_{what}", reply_id="r", tool_name="t", call_id=what, arguments={})
        events.append(action)
        if what.startswith("question"):
            events.append(QuestionAsked(cause=action.id, text="Which?"))
        else:
            events.append(ActionAssessed(cause=action.id, verdict="ask", risk=SecurityRisk.HIGH))
    for event in events:
        state.apply(event.model_copy(update={"seq": state.head + 1}))
    return state


def decided(kind: str, state: ConversationState) -> tuple[Sequence[str], bool]:
    """Return what a decision without ids is about."""
    command = command_of(kind, {}, {"reason": "no"} if kind == "reject" else None, "key_1", state=state)
    assert isinstance(command, commands.Approve | commands.Reject)
    return command.ids, command.all_that_wait


def test_a_decision_without_ids_is_about_all_that_wait_but_nobody_approves_a_question() -> None:
    state = waiting("a", "question", "b")
    assert decided("approve", state) == (("ev_a", "ev_b"), True)
    assert decided("reject", state) == (("ev_a", "ev_question", "ev_b"), True)
    with pytest.raises(NothingPending):
        decided("approve", waiting("question"))
    with pytest.raises(NothingPending):
        decided("reject", waiting())


def test_one_action_can_be_decided_on_by_its_path() -> None:
    command = command_of("approve", {"action": "ev_a"}, {"arguments": {"n": 2}}, None, state=waiting("a", "b"))
    assert isinstance(command, commands.Approve)
    assert (command.ids, command.all_that_wait, command.arguments) == (("ev_a",), False, {"n": 2})


def test_an_interrupt_without_a_run_is_about_the_newest() -> None:
    state = waiting()
    state.run.seq = 7
    command = command_of("interrupt", {}, {}, None, state=state)
    assert isinstance(command, commands.Interrupt)
    assert command.run == 7


def test_values_of_secrets_travel_beside_the_command_that_names_them() -> None:
    sent = commands.AddSecrets(names=("ASKED", "TOKEN"))
    call = request_for(sent, Beside(secrets={"TOKEN": SecretStr("hunter2")}))
    assert "hunter2" not in repr(call)
    body = read_json(json.dumps(call.body))
    command, beside = command_of("add_secrets", {}, body, None), beside_of("add_secrets", body)
    assert command == sent
    assert {name: value.get_secret_value() for name, value in beside.secrets.items()} == {"TOKEN": "hunter2"}
    assert "hunter2" not in f"{command!r}{beside!r}{beside.model_dump_json()}"
    alone = command_of("add_secrets", {}, {"secrets": {"TOKEN": "hunter2"}}, None)
    assert isinstance(alone, commands.AddSecrets)
    assert alone.names == ("TOKEN",)


def test_a_models_key_or_a_profile_travels_beside_the_agent() -> None:
    sent = commands.SetAgent(agent={"llm": {}})
    body = read_json(json.dumps(request_for(sent, Beside(model_key=SecretStr("hunter2"))).body))
    assert command_of("set_agent", {}, body, None) == sent
    assert beside_of("set_agent", body).model_key == SecretStr("hunter2")
    profile = command_of("set_agent", {}, {"profile": "coder"}, None)
    assert isinstance(profile, commands.SetAgent)
    assert profile.agent == {}
    assert beside_of("set_agent", {"profile": "coder"}).profile == "coder"


def test_only_their_own_command_has_parts_beside_it() -> None:
    assert refusal("pause", {"secrets": {"A": "b"}}) == [("secrets",)]
    assert beside_of("pause", {"secrets": {"A": "b"}}) == Beside()


KNOWN = sorted({name for route in COMMAND_ROUTES.values() for name in route.value.model_fields} | {"text", "secrets"})
PARTS = ["role", "content", "type", "steps", "user", "text", "image"]
odd = st.recursive(
    plain | st.sampled_from(PARTS) | st.sampled_from([float("inf"), 10**400, "\ud800", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.sampled_from(PARTS), inner, max_size=3),
)


@given(st.sampled_from(sorted(COMMAND_ROUTES)), st.dictionaries(st.sampled_from(KNOWN), odd, max_size=4) | odd)
def test_any_body_is_a_command_or_refused(kind: str, body: Any) -> None:
    params = dict.fromkeys(COMMAND_ROUTES[kind].in_path, "ev_1")
    try:
        command = command_of(kind, params, body, "key_1", state=waiting("a"))
    except (ValidationError, NothingPending):
        pass  # 422 and 409
    else:
        assert getattr(command, "by", "key_1") == "key_1"
        # What was taken can be recorded.
        assert type(command).model_validate_json(command.model_dump_json()) == command


@given(st.binary(max_size=40) | odd.map(lambda value: json.dumps(value).encode()))
def test_any_data_is_json_or_refused(data: bytes) -> None:
    try:
        value = read_json(data)
    except ValidationError:
        pass  # 422
    else:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
