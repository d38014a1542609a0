from __future__ import annotations

import json
from typing import Any

import pytest

from agentcore.cli.events import Teller
from agentcore.events import KNOWN_KINDS, parse_event

EVIL = "\x1b[31m\u202e\x07"
MESSAGE = {"role": "user", "content": [{"type": "text", "text": f"hi {EVIL}\nthere"}]}
USAGE = {"requests": 1, "input_tokens": 10, "output_tokens": 5, "known_cost": "0.01"}
ANSWER = {"cause": "ev_a", "tool_name": f"t{EVIL}", "call_id": "c"}

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "system_prompt": [{"prompt": f"Work. {EVIL}", "tools": [{"name": "t", "description": "", "parameters": {}}]}],
    "message": [{"source": source, "message": MESSAGE, "code": EVIL} for source in ("user", "agent", "environment")],
    "action": [
        {
            "id": "ev_a",
            "reply_id": "r",
            "tool_name": "terminal",
            "call_id": "c",
            "arguments": {"command": f"x{EVIL}", "other": f"o{EVIL}"},
            "display": [
                {"kind": "markdown", "text": f"a`{EVIL}`\n{EVIL}", "place": "heading"},
                {"kind": "command", "command": f"x{EVIL}\ny{EVIL}"},
                {"kind": "diff", "diff": f"-{EVIL}\n+x"},
                {"kind": "tasks", "tasks": [{"title": EVIL, "status": EVIL, "notes": EVIL}]},
            ],
        },
        {"reply_id": "r", "tool_name": "t", "call_id": "c", "arguments": {}, "malformed": f"{{{EVIL}"},
        {
            "reply_id": "r",
            "tool_name": "t",
            "call_id": "c",
            "arguments": {"a": [1]},
            "before": [{"type": "thinking", "text": f"so {EVIL}"}, {"type": "text", "text": f"I {EVIL}"}],
        },
    ],
    "condensation_summary": [{"summary": f"before: {EVIL}"}],
    "observation": [
        {
            **ANSWER,
            "content": [{"type": "text", "text": f"out {EVIL}\nput"}],
            "display": [
                {"kind": "command", "command": "x", "exit_code": 1},
                {"kind": "markdown", "text": f"`{EVIL}`\n{EVIL}"},
                {"kind": "excerpt", "path": EVIL, "text": EVIL},
                {"kind": "table", "columns": [EVIL], "rows": [[EVIL, EVIL]]},
                {"kind": f"x{EVIL}"},
                {"kind": "map", "text": EVIL},
            ],
        },
        {**ANSWER, "content": [{"type": "image", "data": "aGk=", "media_type": "image/png"}], "is_error": True},
        {**ANSWER, "content": [{"type": "document", "data": "aGk=", "name": f"plan{EVIL}.pdf"}]},
        {**ANSWER, "content": [{"type": "hologram", "x": 1}]},
    ],
    "user_reject": [{**ANSWER, "reason": f"no {EVIL}", "by": f"me {EVIL}"}],
    "agent_error": [{**ANSWER, "error": f"broke {EVIL}", "outcome": "unknown"}],
    "agent_configured": [
        {"agent": {"llm": {"model": f"a/b{EVIL}"}, "tools": [{"name": "terminal"}]}},
        {"agent": {"tools": [{"name": "function", "params": {"import": "m:weather"}}]}, "missing": [f"the {EVIL}"]},
        {"agent": {"toolsets": [{"name": f"box{EVIL}", "params": {}}, 7]}},
    ],
    "workspace_opened": [{"workspace": f"lo{EVIL}", "spec": {"root": f"/a{EVIL}"}}],
    "action_assessed": [
        {
            "cause": "ev_a",
            "verdict": "ask",
            "risk": "high",
            "parts": [{"by": f"b{EVIL}", "verdict": "ask", "reason": EVIL}],
        },
        {"cause": "ev_a", "verdict": "deny", "arguments": {"command": f"y{EVIL}"}},
        {"cause": "nobody", "verdict": "allow"},
    ],
    "action_started": [{"cause": "ev_a"}, {"cause": "nobody"}],
    "action_approved": [{"cause": "ev_a", "by": f"me{EVIL}"}, {"cause": "ev_a", "arguments": {"command": f"y{EVIL}"}}],
    "conversation_state_update": [
        {"update": {"fact": "status", "status": "stuck", "code": "monologue", "detail": f"d{EVIL}"}},
        {"update": {"fact": "title", "title": f"T{EVIL}"}},
        {"update": {"fact": "tags", "tags": {"a": EVIL}}},
        {"update": {"fact": "limits", "limits": {"steps": 3, "cost": "1.5"}}},
        {"update": {"fact": "policy", "policy": {"name": "always_confirm"}}},
        {"update": {"fact": "secrets", "names": ["KEY"]}},
        {"update": {"fact": "forked", "conversation_id": "x", "at": 3}},
        {"update": {"fact": "toolset", "name": "s", "code": "missing", "detail": f"it is missing {EVIL}"}},
        {"update": {"fact": "from_the_future", "x": EVIL}},
    ],
    "condensation_request": [{}],
    "condensation": [{"forgotten": ["a", "b"], "summary": f"s{EVIL}"}],
    "pause": [{}],
    "interrupt": [{"reason": f"Ctrl-C {EVIL}", "partial_text": f"I was{EVIL}\nsaying"}],
    "head_moved": [{"to": 3}],
    "retry": [{"attempt": 1, "error": f"e{EVIL}", "delay": 8}],
    "conversation_error": [{"code": "cost", "detail": f"d{EVIL}"}],
    "hook": [{"hook": f"h{EVIL}", "outcome": "denied", "output": f"o{EVIL}"}],
    "usage": [
        {"model": f"m{EVIL}", "usage": USAGE, "seconds": 1.5},
        {"model": "m", "usage": {"requests": 1}, "purpose": "ask"},
    ],
    "from_the_future": [{"x": EVIL}],
}

CASES = [(kind, fields) for kind, samples in SAMPLES.items() for fields in samples]


def test_there_is_a_sample_of_every_kind() -> None:
    assert KNOWN_KINDS - SAMPLES.keys() == set()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("kind", "fields"), CASES, ids=[kind for kind, _ in CASES])
def test_every_kind_of_event_is_told_in_words_that_are_safe_to_print(
    kind: str, fields: dict[str, Any], whole: bool
) -> None:
    teller = Teller(whole=whole)
    teller.tell(parse_event(json.dumps({"kind": "action", "seq": 1, **SAMPLES["action"][0]})))
    told = teller.tell(parse_event(json.dumps({"kind": kind, "seq": 2, **fields})))
    assert told.label.plain
    for line in (told.label, told.said, *told.words, *told.body):
        assert not set(line.plain) & {"\x1b", "\u202e", "\x07", "\n"}, line.plain


def test_pictures_and_documents_are_told_by_kind_name_and_size() -> None:
    content = [
        {"type": "image", "data": "aGk=", "media_type": "image/png"},
        {"type": "document", "data": "aGk" * 4_000, "name": "plan.pdf"},
        {"type": "document", "url": "https://example.org/a.pdf"},
    ]
    said = ["[a picture: image/png, 2 bytes]", "[a document: plan.pdf, application/pdf, 9,000 bytes]"]
    said.append("[a document: https://example.org/a.pdf]")
    sent = {"kind": "message", "source": "user", "message": {"role": "user", "content": content}}
    assert [line.plain for line in Teller().tell(parse_event(json.dumps(sent))).body] == said
    answered = {"kind": "observation", **ANSWER, "content": content}
    assert [line.plain for line in Teller().tell(parse_event(json.dumps(answered))).body] == said


def test_an_answer_names_the_call_that_it_is_about() -> None:
    teller = Teller()
    teller.tell(parse_event(json.dumps({"kind": "action", "seq": 7, **SAMPLES["action"][0]})))
    told = teller.tell(parse_event(json.dumps({"kind": "observation", "seq": 9, **SAMPLES["observation"][0]})))
    assert (told.line.plain, told.about) == ("exit code 1", "terminal #7")
    assert told.said.plain == "exit code 1 (terminal #7)"


def test_an_assessment_is_told_with_its_verdict_its_risk_and_who_said_so() -> None:
    teller = Teller()
    teller.tell(parse_event(json.dumps({"kind": "action", "seq": 7, **SAMPLES["action"][0]})))
    parts = [{"by": "tool", "risk": "high"}, {"by": "rules", "verdict": "ask", "reason": "It deletes."}]
    said = {"kind": "action_assessed", "cause": "ev_a", "verdict": "ask", "risk": "high", "parts": parts}
    told = teller.tell(parse_event(json.dumps(said)))
    assert (told.label.plain, told.said.plain) == ("asks", "risk: high; rules: It deletes. (terminal #7)")


def test_a_workspace_is_told_with_its_folder() -> None:
    opened = {"kind": "workspace_opened", "workspace": "local", "spec": {"root": "/srv/project"}}
    told = Teller().tell(parse_event(json.dumps(opened)))
    assert (told.label.plain, told.said.plain) == ("workspace", "local /srv/project")


def test_toolsets_are_named_among_the_tools_of_an_agent() -> None:
    wrapped: Any = {"name": "prefixed", "params": {"toolset": {"name": "github", "params": {}}, "prefix": "x_"}}
    agent: Any = {"llm": {"model": "a/b"}, "tools": [{"name": "terminal"}], "toolsets": [wrapped]}
    sent = {"seq": 1, "id": "e", "timestamp": "2026-01-01T00:00:00Z", "source": "user", "cause": None}
    event = parse_event(json.dumps({**sent, "kind": "agent_configured", "agent": agent}))
    assert Teller().tell(event).line.plain == "a/b, with terminal, github (a toolset)"
