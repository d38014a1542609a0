"""Questions at the command line: a prompt on a terminal, and `resume --answer` elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentcore.testing import call, calls, say

if TYPE_CHECKING:
    from pydantic import JsonValue
    from tests.cli.conftest import Cli

CTRL_C, CTRL_D = "\x03", "\x04"
ASK = call("ask_user", text="Which database?", options=["sqlite", "postgres"])


def test_a_question_is_asked_at_the_terminal_until_the_answer_fits(cli: Cli) -> None:
    with cli.serve(ASK, say("Using postgres.")) as provider:
        code, screen = cli.on_terminal(
            "run", "Do it.", "-m", "mine", "--base-url", provider.base_url,
            answers=[("Answer (", "oracle\n"), ("one of the options", ""), ("Answer (", "2\n")],
        )  # fmt: skip
    assert code == 0
    assert "Using postgres." in screen.text


def test_an_answer_is_asked_for_again_until_it_fits_the_schema(cli: Cli) -> None:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"port": {"type": "integer", "minimum": 1}},
        "required": ["port"],
    }
    with cli.serve(call("ask_user", text="Where?", answer_schema=schema), say("Listening.")) as provider:
        code, screen = cli.on_terminal(
            "run", "Do it.", "-m", "mine", "--base-url", provider.base_url,
            answers=[
                ("as JSON that fits", ""),
                ("Answer (", "8080\n"), ("not of type 'object'", ""),
                ("Answer (", "{\n"), ("not of type 'object'", ""),
                ("Answer (", '{"port": 0}\n'), ("less than the minimum", ""),
                ("Answer (", '{"port": 80}\n'),
            ],
        )  # fmt: skip
    assert code == 0
    assert "Listening." in screen.text
    (answered,) = [event for event in cli.events() if event["kind"] == "question_answered"]
    assert answered["answer"] == {"port": 80}


def test_a_person_declines_one_question_with_a_reason_and_answers_the_other(cli: Cli) -> None:
    with cli.serve(calls(ASK, call("ask_user", text="Which port?")), say("I see.")) as provider:
        code, _ = cli.on_terminal(
            "run", "Do it.", "-m", "mine", "--base-url", provider.base_url,
            answers=[("Answer (", "/decline ask Bob\n"), ("Which port?", ""), ("Answer (", "8080\n")],
        )  # fmt: skip
    assert code == 0
    ended = [event for event in cli.events() if event["kind"] == "question_answered"]
    assert {(each["outcome"], each.get("answer"), each.get("reason")) for each in ended} == {
        ("declined", None, "ask Bob"),
        ("answered", "8080", None),
    }


def test_ctrl_c_ctrl_d_and_an_empty_line_leave_a_question_waiting(cli: Cli) -> None:
    with cli.serve(ASK, say("Using sqlite.")) as provider:
        with cli.start("run", "x", "-m", "mine", "--base-url", provider.base_url) as screen:
            screen.shows("Answer (")
            screen.types(CTRL_C)
            screen.shows("waiting for an answer (1 question)")
            assert screen.ends() == 3
        (conversation,) = cli.ids()
        for typed in (CTRL_D, "\n"):
            code, _ = cli.on_terminal(
                "resume", conversation, "--base-url", provider.base_url, answers=[("Answer (", typed)]
            )
            assert code == 3
        code, _ = cli.on_terminal(
            "resume", conversation, "--base-url", provider.base_url, answers=[("Answer (", "1\n")]
        )
    assert code == 0
    assert [event["kind"] for event in cli.events()].count("question_answered") == 1


def test_json_lines_have_the_question_and_its_answer(cli: Cli) -> None:
    with cli.serve(ASK, say("Using sqlite.")) as provider:
        asked = cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url, "--json")
        assert asked.code == 3
        (question,) = [line for line in asked.lines if line.get("kind") == "question_asked"]
        assert (question["text"], question["options"]) == ("Which database?", ["sqlite", "postgres"])
        assert asked.lines[-1]["status"] == "waiting_for_confirmation"
        (conversation,) = cli.ids()
        wrong = cli.run("resume", conversation, "--answer", "oracle", "--base-url", provider.base_url, "--json")
        assert "one of the options" in wrong.err + wrong.out
        assert wrong.code not in {0, 3}
        answered = cli.run("resume", conversation, "--answer", "2", "--base-url", provider.base_url, "--json")
    assert answered.code == 0
    (ended,) = [line for line in answered.lines if line.get("kind") == "question_answered"]
    assert ended["answer"] == "postgres"


def test_without_a_terminal_it_waits_and_resume_answers_it(cli: Cli) -> None:
    with cli.serve(ASK, say("Using sqlite.")) as provider:
        asked = cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        assert asked.code == 3
        assert "Which database?" in asked.out
        assert "--answer TEXT" in asked.out
        (conversation,) = cli.ids()
        answered = cli.run("resume", conversation, "--answer", "sqlite", "--base-url", provider.base_url)
    assert answered.code == 0
    assert "Using sqlite." in answered.out
