"""Questions at the command line: a prompt on a terminal, and `resume --answer` elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentcore.testing import call, say

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

ASK = call("ask_user", text="Which database?", options=["sqlite", "postgres"])


def test_a_question_is_asked_at_the_terminal_until_the_answer_fits(cli: Cli) -> None:
    with cli.serve(ASK, say("Using postgres.")) as provider:
        code, screen = cli.on_terminal(
            "run", "Do it.", "-m", "mine", "--base-url", provider.base_url,
            answers=[("Answer (", "oracle\n"), ("one of the options", ""), ("Answer (", "2\n")],
        )  # fmt: skip
    assert code == 0
    assert "Using postgres." in screen.text


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
