"""Questions at the command line: a prompt on a terminal, and `resume --answer` elsewhere."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from agentcore import Agent, Conversation, FileStore
from agentcore.cli.questions import parse_answer, print_question
from agentcore.errors import AnswerRefused
from agentcore.events import QuestionAsked
from agentcore.llm import LLM
from agentcore.testing import ScriptLine, call, calls, say
from agentcore.tools import RawTool, ToolSpec, register_tool
from deploying import DEPLOY, SURE, WHERE, deploying

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
                ("JSON that fits", ""),
                ("Answer (", "8080\n"), ("not of type 'object'", ""),
                ("Answer (", "{\n"), ("not JSON", ""),
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


@pytest.mark.slow
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
        assert wrong.code == 2
        assert wrong.out == ""
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


@pytest.mark.parametrize(
    ("schema", "shown", "wrong", "right"),
    [
        ({"type": "boolean"}, "yes or no", ("maybe", "Type yes or no, not 'maybe'"), ("Y", True)),
        ({"type": "boolean"}, "yes or no", ("1", "Type yes or no"), ("no", False)),
        ({"type": "integer", "minimum": 1}, "a whole number, at least 1", ("0", "Type a whole number, at least 1"), ("80", 80)),
        ({"type": "integer"}, "a whole number", ("x", "Type a whole number, not 'x'"), ("-1", -1)),
        ({"type": "number", "exclusiveMaximum": 2}, "a number, less than 2", ("two", "Type a number"), ("1.5", 1.5)),
        ({"enum": ["dev", "prod"]}, "2. prod", ("3", "Type one of dev, prod"), ("2", "prod")),
        ({"enum": [1, None]}, "2. null", ("x", "Type one of 1, null"), ("null", None)),
        ({"type": "array"}, 'JSON that fits {"type": "array"}', ("[1,", "not JSON: Expecting value, at character"), ("[1]", [1])),
        ({"type": "string", "minLength": 2}, "text", ("x", "too short"), ("true", "true")),
    ],
)  # fmt: skip
def test_people_read_what_to_type_and_not_the_schema(
    schema: dict[str, JsonValue], shown: str, wrong: tuple[str, str], right: tuple[str, JsonValue]
) -> None:
    asked = QuestionAsked(text="Which?", answer_schema=schema)
    output = StringIO()
    print_question(Console(file=output, width=200), asked)
    assert shown in output.getvalue()
    with pytest.raises(AnswerRefused) as refused:
        parse_answer(asked, wrong[0])
    assert wrong[1] in str(refused.value)
    answer = parse_answer(asked, right[0])
    assert (answer, type(answer)) == (right[1], type(right[1]))


def test_an_answer_that_does_not_fit_is_a_wrong_argument_and_says_what_to_type(cli: Cli) -> None:
    ask = call("ask_user", text="Which port?", answer_schema={"type": "integer", "minimum": 1})
    with cli.serve(ask, say("Thanks.")) as provider:
        assert cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url).code == 3
        before = len(cli.events())
        (conversation,) = cli.ids()
        wrong = cli.run("resume", conversation, "--answer", "abc", "--base-url", provider.base_url)
        assert len(cli.events()) == before
        right = cli.run("resume", conversation, "--answer", "80", "--base-url", provider.base_url)
    assert (wrong.code, wrong.out) == (2, "")
    assert "--answer does not answer 'Which port?'. Type a whole number, at least 1, not 'abc'." in wrong.err
    assert right.code == 0


def deploying_twice() -> RawTool:
    return replace(deploying(questions=(WHERE, SURE)), spec=ToolSpec(name="test_questions.deploy"))


async def _deploy(cli: Cli, base_url: str) -> None:
    agent = Agent(llm=LLM("openai/mine", base_url=base_url, api_key="key"), tools=[deploying_twice()])
    store = FileStore(cli.home / "conversations")
    async with Conversation(agent, cli.project, store=store, id="deploys") as conversation:
        assert (await conversation.run("Deploy it.")).questions


def test_a_call_that_had_begun_is_resumed_with_the_answers_from_the_command_line(cli: Cli) -> None:
    register_tool("test_questions.deploy", deploying_twice)
    script: list[ScriptLine] = [DEPLOY, say("Deployed it.")]
    with cli.serve(*script) as provider:
        cli.portal.call(_deploy, cli, provider.base_url)
        asked = cli.run("resume", "deploys", "--answer", "1", "--base-url", provider.base_url)
        assert asked.code == 3
        assert "Sure?" in asked.out
        code, screen = cli.on_terminal(
            "resume", "deploys", "--base-url", provider.base_url, answers=[("Answer (", "y\n")]
        )
    assert code == 0
    assert "deployed to True" in screen.text
    assert "Deployed it." in screen.text
    ended = [event["answer"] for event in cli.events() if event["kind"] == "question_answered"]
    assert ended == ["staging", True]
