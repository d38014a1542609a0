"""`agentcore resume`: after an interrupt, a crash, a question, an end. What it prints is in the transcripts."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.cli.conftest import wait_for

from agentcore import Agent, Conversation
from agentcore.llm import RetryPolicy
from agentcore.record import FileStore
from agentcore.testing import ScriptedLLM, call, hang
from agentcore.workspace import LocalWorkspace

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

TOUCH = call("terminal", command="touch touched")
ASK = ("--confirm", "always")
NOWHERE = ("--model", "mine", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0")


def test_a_killed_run_continues_where_it_was_and_does_nothing_twice(cli: Cli) -> None:
    begun = cli.project / "begun"
    with cli.serve(call("terminal", command="echo x >> begun; sleep 1000"), "It was cut off.") as provider:
        with cli.start("run", "Do it.", "--model", "mine", "--base-url", provider.base_url) as screen:
            wait_for(begun.exists)
            os.kill(screen.process.pid, signal.SIGKILL)
            screen.process.wait()
        ended = cli.run("resume")
        assert (ended.code, ended.err) == (0, ""), ended.out
        assert "cut off after" in ended.out
        assert "It was cut off." in ended.out
        last = json.loads(provider.requests[-1].content)["messages"][-1]
    assert begun.read_text() == "x\n"
    assert last["role"] == "tool"
    (call_id,) = [event["id"] for event in cli.events() if event["kind"] == "action"]
    assert [event["kind"] for event in cli.events() if event["cause"] == call_id] == ["action_started", "observation"]
    assert cli.run("log", "verify").code == 0


@pytest.mark.slow
def test_a_conversation_is_running_until_its_process_is_killed_and_then_cut_off(cli: Cli) -> None:
    with (
        cli.serve(hang) as provider,
        cli.start("run", "Do it.", "-m", "mine", "--base-url", provider.base_url, "--id", "k") as screen,
    ):
        wait_for(lambda: provider.requests)
        for command in ("conversations", "log show"):
            assert "cut off" not in cli.run(*command.split()).out
        refused = cli.run("resume", *NOWHERE)
        assert refused.code == 1
        assert refused.err.startswith("error: Conversation 'k' is being written by process ")
        repaired = cli.run("log", "repair", "k")
        assert repaired.code == 1
        assert "is being written by process" in repaired.err
        os.kill(screen.process.pid, signal.SIGKILL)
        screen.process.wait()
    listed = cli.run("conversations").out
    assert "cut off" in listed
    assert "running" not in listed
    assert [row["status"] for row in cli.run("conversations", "--json").lines] == ["cut_off"]
    assert "\ncut off: its process is gone" in cli.run("log", "show").out


def test_a_waiting_call_is_approved_later_with_another_model(cli: Cli) -> None:
    assert cli.play(TOUCH, flags=[*ASK, "--id", "w"]).code == 3
    with cli.serve("Touched it.", api_key="sk-test") as provider:
        env = {"AGENTCORE_MODEL": "other", "AGENTCORE_BASE_URL": provider.base_url, "AGENTCORE_API_KEY": "sk-test"}
        ended = cli.run("resume", "w", "--approve", env=env)
        assert json.loads(provider.requests[0].content)["model"] == "other"
    assert (ended.code, ended.err) == (0, ""), ended.out
    assert f"AGENTCORE_MODEL: using openai/other at {provider.base_url} (before: openai/mine)\n" in ended.out
    assert "Touched it." in ended.out
    assert (cli.project / "touched").exists()
    assert "sk-test" not in cli.log().read_text()


def test_the_model_reads_a_rejection_and_the_message_with_it(cli: Cli) -> None:
    assert cli.play(TOUCH, flags=ASK).code == 3
    with cli.serve("Very well.") as provider:
        address = ("--model", "mine", "--base-url", provider.base_url)
        # Text with a space is no id: it is a message to the last conversation.
        ended = cli.run("resume", "and be quick", "--reject", "Use make.", *address, "--json")
        assert ended.code == 0, ended.err
        asked = json.loads(provider.requests[0].content)["messages"]
    assert [message["role"] for message in asked[-3:]] == ["assistant", "tool", "user"]
    assert "Use make." in json.dumps(asked[-2])
    assert "and be quick" in json.dumps(asked[-1])
    kinds = [line["kind"] for line in ended.lines]
    assert kinds[0] == "agent_configured"  # only new events: another address
    assert "user_reject" in kinds
    assert ended.lines[-1]["text"] == "Very well."
    assert not (cli.project / "touched").exists()


def test_a_question_is_asked_again_after_a_restart(cli: Cli) -> None:
    assert cli.play(TOUCH, flags=[*ASK, "--id", "w"]).code == 3
    code, screen = cli.on_terminal("resume", *NOWHERE, answers=[("[y/n/e/l] ", "l\n")])
    assert code == 3
    assert "Approve this call?\n │ terminal $ touch touched\n" in screen.text
    assert not (cli.project / "touched").exists()


def test_a_finished_one_prints_its_answer_and_does_not_run(cli: Cli) -> None:
    cli.play("All is well.", flags=["--id", "f"])
    before = cli.log().read_bytes()
    (result,) = cli.run("resume", "f", "--json").lines
    assert (result["kind"], result["status"], result["text"]) == ("result", "finished", "All is well.")
    assert cli.log().read_bytes() == before


def test_a_scripted_model_cannot_be_resumed_without_naming_another(cli: Cli) -> None:
    async def begin() -> None:
        store = FileStore(cli.home / "conversations")
        async with (
            LocalWorkspace(cli.project) as workspace,
            Conversation(Agent(llm=ScriptedLLM(["Done."])), workspace, store=store) as conversation,
        ):
            await conversation.run("Do it.")

    anyio.run(begin)
    ended = cli.run("resume", "and more")
    assert ended.code == 2
    assert "--model provider/model" in ended.err


def test_flags_change_limits_and_policy_from_now_on(cli: Cli) -> None:
    cli.play(TOUCH, flags=[*ASK, "--max-steps", "7"])
    flags = ("-m", "anthropic/claude-sonnet-4-5", "--max-cost", "$2.50", "--confirm", "risky", "--json")
    ended = cli.run("resume", *flags, env={"AGENTCORE_API_KEY": "sk-test"})
    assert ended.code == 3
    updates = [line["update"] for line in ended.lines if line["kind"] == "conversation_state_update"]
    changed = {update["fact"]: update for update in updates}
    assert (changed["limits"]["limits"]["cost"], changed["limits"]["limits"]["steps"]) == ("2.50", 7)
    assert changed["policy"]["policy"]["name"] == "confirm_risky"
    assert ended.lines[-1]["pending"][0]["arguments"] == {"command": "touch touched"}  # the waiting call still waits
    before = cli.log().read_bytes()
    assert cli.run("resume", *NOWHERE).code == 2  # no price is known for this model
    assert cli.log().read_bytes() == before
    lifted = cli.run("resume", *NOWHERE, "--max-cost", "none", "--max-steps", "none", "--json")
    assert lifted.code == 3
    (limits,) = [line["update"]["limits"] for line in lifted.lines if line.get("update", {}).get("fact") == "limits"]
    assert (limits["steps"], limits["cost"]) == (None, None)


def test_the_environment_moves_the_model_and_the_change_is_printed_once(cli: Cli) -> None:
    assert cli.run("run", "x", *NOWHERE).code == 1
    with cli.serve("Here.", "There.") as provider:
        env = {"AGENTCORE_BASE_URL": provider.base_url}
        moved = cli.run("resume", env=env)
        assert (moved.code, moved.err) == (0, ""), moved.out
        assert f"AGENTCORE_BASE_URL: using {provider.base_url} (before: http://127.0.0.1:9/v1)\n" in moved.out
        same = cli.run("resume", "and more", env={**env, "AGENTCORE_MODEL": "mine"})
        assert same.code == 0, same.err
        assert "AGENTCORE_" not in same.out


@pytest.mark.slow
def test_a_dead_address_of_the_log_is_named_as_such_within_seconds(cli: Cli) -> None:
    cli.play("Done.", flags=["--id", "a"])
    ended = cli.run("resume", "a", "continue")
    assert ended.code == 1
    assert "The address came from the log. Use another one: agentcore resume a --base-url URL" in ended.err
    retries = [event for event in cli.events() if event["kind"] == "retry"]
    assert len(retries) == RetryPolicy().refused_retries
    assert all(event["delay"] <= RetryPolicy().refused_wait for event in retries)
    assert "from the log" not in cli.run("resume", "a", *NOWHERE).err


def test_the_model_that_a_flag_names_stays_the_conversations(cli: Cli) -> None:
    with cli.serve("One.", "Two.", "Three.") as provider:
        address = ("--base-url", provider.base_url)
        assert cli.run("run", "Go.", "--id", "s", "--model", "first", *address).code == 0
        ended = cli.run("resume", "s", "And more.", "--model", "openai/second", *address, "--json")
        assert ended.code == 0, ended.err
        assert [line["kind"] for line in ended.lines].count("agent_configured") == 1
        again = cli.run("resume", "s", "And more.", *address, "--json")
        assert again.code == 0, again.err
        assert "agent_configured" not in [line["kind"] for line in again.lines]
        asked = [json.loads(request.content) for request in provider.requests]
    assert [body["model"] for body in asked] == ["first", "second", "second"]
    # The history as it was, and nothing in front of it changed: the tools and the prompt are the same.
    assert asked[1]["messages"][: len(asked[0]["messages"])] == asked[0]["messages"]
    assert asked[1]["tools"] == asked[0]["tools"]
