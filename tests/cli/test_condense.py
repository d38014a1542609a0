"""Condensing at the command line: `agentcore condense`, and what a run does by itself."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.cli.conftest import wait_for

from agentcore import LLM, Agent, Conversation, FileStore, Limits, ask_user
from agentcore.errors import BadRequest
from agentcore.testing import ScriptLine, call, hang, say
from agentcore_tools import coding_tools
from rounds import some_quick

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

SUMMARY = "## Goal\nCount the lines.\n\n## Next steps\nAnswer."
LARGE = 20_000
KEY = {"OPENAI_API_KEY": "sk-test"}


def look(project: Path, times: int = 4) -> list[ScriptLine]:
    """Return calls whose outputs are large, and a reply."""
    (project / "large").write_text("".join(f"line {number}, and more of it\n" for number in range(2000)))
    return [*(call("terminal", command=f"head -c {LARGE} large; echo {n}") for n in range(times)), say("Done.")]


def kinds(cli: Cli) -> list[str]:
    """Return the kinds of the events of the only log."""
    return [event["kind"] for event in cli.events()]


@pytest.mark.parametrize(
    ("flags", "recorded"),
    some_quick(
        [
            ((), "summary"),
            (("--condenser", "masking"), "masking"),
            (("--condenser", "window"), "window"),
            (("--condenser", "none"), None),
        ],
        4,
    ),
)
def test_the_condenser_is_recorded_and_kept_when_the_conversation_is_resumed(
    cli: Cli, flags: tuple[str, ...], recorded: str | None
) -> None:
    with cli.serve("Done.", "Again.") as provider:
        address = ("--base-url", provider.base_url)
        assert cli.run("run", "Do it.", "-m", "mine", *address, *flags).code == 0
        assert cli.run("resume", "Go on, please.", *address).code == 0
        offered = [
            [tool["function"]["name"] for tool in json.loads(request.content)["tools"]] for request in provider.requests
        ]
    configured = [event["agent"] for event in cli.events() if event["kind"] == "agent_configured"]
    assert [agent["condenser"]["name"] if "condenser" in agent else None for agent in configured] == [recorded]
    assert ["recall" in tools for tools in offered] == [recorded is not None] * 2


def test_condense_says_what_it_freed_and_what_it_cost(cli: Cli) -> None:
    with cli.serve(*look(cli.project), SUMMARY, "Two thousand.") as provider:
        address = ("--base-url", provider.base_url)
        assert cli.run("run", "Do it.", "-m", "mine", *address).code == 0
        ended = cli.run("condense", "-v")
        assert (ended.code, ended.err) == (0, "")
        assert "\nhistory shortened: " in ended.out
        assert "8 events, by summary\n" in ended.out
        assert " │ Count the lines.\n" in ended.out
        assert "\nused: " in ended.out
        again = cli.run("condense")
        assert again.code == 0
        assert "nothing was shortened: too little of the history can be left out\n" in again.out
        assert cli.run("resume", "How many, please?", *address).code == 0
        last = provider.requests[-1].content.decode()
    assert "Count the lines." in last
    assert len(last) < LARGE + 20_000
    (cut,) = [event for event in cli.events() if event["kind"] == "condensation"]
    assert cut["tokens_before"] > cut["tokens_after"] > 0
    assert "Count the lines." in cli.run("log", "show").out
    assert "Count the lines." in cli.run("log", "export", "--format", "markdown").out


def test_condense_as_json(cli: Cli) -> None:
    with cli.serve(*look(cli.project), SUMMARY) as provider:
        assert cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url).code == 0
        ended = cli.run("condense", "--json")
        again = cli.run("condense", "--json")
    assert [line["kind"] for line in ended.lines] == ["usage", "condensation", "result"]
    result = ended.lines[-1]
    assert (result["exit_code"], result["condenser"], result["forgotten"]) == (0, "summary", 8)
    assert result["usage"]["requests"] == 1
    assert result["tokens_after"] < result["tokens_before"]
    assert [(line["kind"], line["condenser"]) for line in again.lines] == [("result", None)]


def test_a_model_that_writes_no_summary_leaves_the_history_as_it_is(cli: Cli) -> None:
    with cli.serve(*look(cli.project), BadRequest("No summary today.")) as provider:
        assert cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url).code == 0
        ended = cli.run("condense", "--retries", "0")
    assert ended.code == 1
    assert ended.err.startswith("error: ")
    assert "No summary today." in ended.err
    assert "condensation" not in kinds(cli)


def test_condense_needs_the_key_and_the_folder_as_resume_does(cli: Cli) -> None:
    with cli.serve("Done.", api_key="sk-test") as provider:
        flags = ("-m", "openai/gpt-4.1", "--base-url", provider.base_url, "--id", "c")
        assert cli.run("run", "Do it.", *flags, env=KEY).code == 0
    for arguments in (("c", "-m", "anthropic/claude-sonnet-4-5"), ("nosuch",)):
        condensed, resumed = cli.run("condense", *arguments), cli.run("resume", *arguments, "go on")
        if arguments == ("nosuch",):
            assert condensed.err.startswith("error: No conversation in ")
        else:
            assert condensed.err == resumed.err
        assert condensed.code == resumed.code == 2
    cli.project = cli.project.rename(cli.project.parent / "moved")
    gone = cli.run("condense", "c")
    assert gone.code == 2
    assert "agentcore condense c --workspace FOLDER" in gone.err


def test_a_limit_that_is_reached_ends_it_with_its_exit_code(cli: Cli) -> None:
    with cli.serve(*look(cli.project), SUMMARY) as provider:
        address = ("--base-url", provider.base_url)
        assert cli.run("run", "Do it.", "-m", "mine", *address).code == 0

        async def limit() -> None:
            agent = Agent(llm=LLM(model="openai/mine", base_url=provider.base_url), tools=[*coding_tools(), ask_user])
            store = FileStore(cli.home / "conversations")
            async with Conversation(agent, str(cli.project), id=cli.ids()[0], store=store) as conversation:
                await conversation.set_limits(Limits(tokens=1))

        anyio.run(limit)
        ended = cli.run("condense", *address)
    assert ended.code == 6
    assert ended.err.startswith("error: ")
    assert "condensation" not in kinds(cli)


@pytest.mark.slow
def test_ctrl_c_leaves_the_history_as_it_is(cli: Cli) -> None:
    with cli.serve(*look(cli.project), hang) as provider:
        assert cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url).code == 0
        asked = len(provider.requests)
        with cli.start("condense") as screen:
            wait_for(lambda: len(provider.requests) > asked)
            os.kill(screen.process.pid, signal.SIGINT)
            assert screen.ends() == 130
    assert "the history stays as it was" in screen.text
    assert "condensation" not in kinds(cli)
    assert cli.run("log", "verify").code == 0


def test_a_model_with_a_smaller_window_takes_over_a_long_conversation(cli: Cli) -> None:
    with cli.serve(*look(cli.project), SUMMARY, "Two thousand.", api_key="sk-test") as provider:
        address = ("--base-url", provider.base_url)
        assert cli.run("run", "Do it.", "-m", "openai/gpt-4.1", *address, env=KEY).code == 0
        ended = cli.run("resume", "How many, please?", "-m", "openai/gpt-4", *address, env=KEY)
        assert (ended.code, ended.err) == (0, ""), ended.out
        assert "history shortened: " in ended.out
        assert "Two thousand." in ended.out
        assert len(provider.requests[-1].content) < 2 * LARGE
