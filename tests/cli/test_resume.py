"""Going on: after an interrupt, a crash, a question, an end. What the first run was is scripted; what goes on is real."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio
import pytest

from agentcore.llm import RetryPolicy
from agentcore.testing import ChatProvider, call, hang, serve_provider

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

TOUCH = 'call("terminal", command="touch touched")'
NOWHERE = ("--model", "mine", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0")


async def test_a_killed_run_goes_on_where_it_was_and_does_nothing_twice(cli: Cli) -> None:
    begun = cli.project / "begun"
    script = [call("terminal", command="echo x >> begun; sleep 1000"), "It was cut off."]
    async with serve_provider(script) as provider:
        run = cli.started("run", "Do it.", "--model", "mine", "--base-url", provider.base_url)
        async with run as process:
            with anyio.fail_after(60):
                while not begun.exists():
                    await anyio.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()
        ended = await cli.run("resume")
        assert (ended.code, ended.err) == (0, ""), ended.out
        assert "cut off after" in ended.out
        assert "It was cut off." in ended.out
        last = json.loads(provider.requests[-1].content)["messages"][-1]
    assert begun.read_text() == "x\n"
    assert last["role"] == "tool"
    assert "is not known: look before you do it again" in json.dumps(last)
    (call_id,) = [event["id"] for event in cli.events() if event["kind"] == "action"]
    told = [event["kind"] for event in cli.events() if event["cause"] == call_id]
    assert told == ["action_started", "observation"]
    assert (await cli.run("log", "verify")).code == 0


async def test_what_waited_is_approved_from_elsewhere_and_goes_on_with_another_model(cli: Cli) -> None:
    assert (await cli.play(f"[{TOUCH}]", "--confirm", "--id", "w")).code == 3
    async with serve_provider(["Touched it."], api_key="sk-test") as provider:
        ended = await cli.run(
            "resume",
            "w",
            "--approve",
            env={"AGENTCORE_MODEL": "mine", "AGENTCORE_BASE_URL": provider.base_url, "AGENTCORE_API_KEY": "sk-test"},
        )
    assert (ended.code, ended.err) == (0, ""), ended.out
    assert "terminal $ touch touched" in ended.out
    assert "Touched it." in ended.out
    assert (cli.project / "touched").exists()
    assert "sk-test" not in cli.log().read_text()


async def test_the_model_reads_a_rejection_and_what_is_said_with_it(cli: Cli) -> None:
    assert (await cli.play(f"[{TOUCH}]", "--confirm")).code == 3
    async with serve_provider(["Very well."]) as provider:
        address = ("--model", "mine", "--base-url", provider.base_url)
        # Words with a space in them are no id: they go to the one that changed last.
        ended = await cli.run("resume", "and be quick", "--reject", "Use make.", *address, "--json")
        assert ended.code == 0, ended.err
        asked = json.loads(provider.requests[0].content)["messages"]
    assert [message["role"] for message in asked[-3:]] == ["assistant", "tool", "user"]
    assert "Use make." in json.dumps(asked[-2])
    assert "and be quick" in json.dumps(asked[-1])
    kinds = [line["kind"] for line in ended.lines]
    assert kinds[0] == "agent_configured"  # only what is new: another model
    assert "user_reject" in kinds
    assert ended.lines[-1]["text"] == "Very well."
    assert not (cli.project / "touched").exists()


async def test_a_question_is_asked_again_after_a_restart(cli: Cli) -> None:
    assert (await cli.play(f"[{TOUCH}]", "--confirm", "--id", "w")).code == 3
    async with cli.on_terminal("resume", *NOWHERE) as screen:
        await screen.shows("w: waiting for confirmation after")
        await screen.shows("May it do this?")
        await screen.shows("terminal $ touch touched")
        await screen.shows("[y/n/e/l] ")
        await screen.types("l\n")
        assert await screen.ends() == 3
    assert not (cli.project / "touched").exists()


async def test_a_finished_one_is_told_and_nothing_runs(cli: Cli) -> None:
    await cli.play('["All is well."]', "--id", "f")
    before = cli.log().read_bytes()
    ended = await cli.run("resume", "f")
    assert (ended.code, ended.err) == (0, "")
    assert "All is well." in ended.out
    assert "agentcore resume f '...'" in ended.out
    (result,) = (await cli.run("resume", "f", "--json")).lines
    assert (result["kind"], result["status"], result["text"]) == ("result", "finished", "All is well.")
    assert cli.log().read_bytes() == before


async def test_one_that_is_being_written_is_left_alone(cli: Cli) -> None:
    async with cli.on_terminal(script=f"[{TOUCH}]", arguments=["--confirm", "--id", "busy"]) as screen:
        await screen.shows("[y/n/e/l] ")
        ended = await cli.run("resume", "busy", *NOWHERE)
        assert ended.code == 1
        assert ended.err.startswith("error: Conversation 'busy' is being written by process ")
        assert "Traceback" not in ended.err
        await screen.types("l\n")
        assert await screen.ends() == 3


async def test_a_scripted_model_can_not_go_on_and_it_is_said_what_can(cli: Cli) -> None:
    await cli.play(f"[{TOUCH}]", "--confirm", "--id", "w")
    ended = await cli.run("resume")
    assert ended.code == 2
    assert "--model provider/model" in ended.err


async def test_a_folder_that_is_gone_is_one_sentence(cli: Cli) -> None:
    await cli.play(f"[{TOUCH}]", "--confirm")
    moved = cli.project.parent / "moved"
    cli.project.rename(moved)
    cli.project = moved
    ended = await cli.run("resume", *NOWHERE)
    assert ended.code == 2
    assert "There is nothing at" in ended.err
    assert (await cli.run("resume", *NOWHERE, "--workspace", ".")).code == 3


async def test_an_ambiguous_id_lists_what_it_could_mean(cli: Cli) -> None:
    for conversation_id in ("x-1", "x-2"):
        await cli.play('["Done."]', "--id", conversation_id)
    ended = await cli.run("resume", "x", *NOWHERE)
    assert ended.code == 2
    assert "'x' is the beginning of 2 ids" in ended.err
    assert "\n  x-1" in ended.err
    assert "\n  x-2" in ended.err


async def test_where_nothing_was_said_yet_there_is_nothing_to_go_on_with(cli: Cli) -> None:
    await cli.play('["Done."]', "--id", "e")
    lines = cli.log().read_bytes().splitlines(keepends=True)
    cli.log().write_bytes(lines[0])
    ended = await cli.run("resume", *NOWHERE)
    assert ended.code == 2
    assert "Nothing was said in 'e' yet" in ended.err


async def test_a_log_with_an_unfinished_end_goes_on_and_says_what_was_cut(cli: Cli) -> None:
    await cli.play(f"[{TOUCH}]", "--confirm", "--id", "t")
    with cli.log().open("ab") as file:
        file.write(b'{"seq":99,"half')
    ended = await cli.run("resume", *NOWHERE)
    assert ended.code == 3
    assert "cut off the end of the log, which was not whole: an unfinished line of 15 bytes" in ended.out


async def test_an_end_that_may_have_been_acknowledged_is_not_said_never_to_have_been(cli: Cli) -> None:
    await cli.play(f"[{TOUCH}]", "--confirm", "--id", "t")
    lines = cli.log().read_bytes().splitlines(keepends=True)
    cli.log().write_bytes(b"".join([*lines[:-1], lines[-1].replace(b'"seq"', b'"sEq"')]))
    checked = await cli.run("log", "verify", "t")
    ended = await cli.run("resume", *NOWHERE)
    assert (checked.code, ended.code) == (3, 3)
    assert "cut off the end of the log, which was not whole: an unsound line at the end" in ended.out
    assert "events.jsonl.cut-1" in ended.out.replace("\n", "")
    assert "acknowledged" not in ended.out
    assert "never acknowledged" not in checked.out


async def test_a_damaged_log_is_not_gone_on_with_and_the_repair_is_named(cli: Cli) -> None:
    await cli.play('["Done."]', "--id", "d")
    lines = cli.log().read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"Do it.", b"Do xx.")
    cli.log().write_bytes(b"".join(lines))
    ended = await cli.run("resume", *NOWHERE)
    assert ended.code == 1
    assert "line 3" in ended.err
    assert "agentcore log repair d" in ended.err.replace("\n", " ")


async def test_flags_change_limits_and_policy_from_now_on(cli: Cli) -> None:
    await cli.play(f"[{TOUCH}]", "--confirm", "--steps", "7")
    flags = ("-m", "anthropic/claude-sonnet-4-5", "--max-cost", "$2.50", "--confirm", "risky", "--json")
    ended = await cli.run("resume", *flags, env={"AGENTCORE_API_KEY": "sk-test"})
    assert ended.code == 3
    updates = [line["update"] for line in ended.lines if line["kind"] == "conversation_state_update"]
    changed = {update["fact"]: update for update in updates}
    assert changed["limits"]["limits"]["cost"] == "2.50"
    assert changed["limits"]["limits"]["steps"] == 7
    assert changed["policy"]["policy"]["name"] == "confirm_risky"
    assert ended.lines[-1]["pending"][0]["arguments"] == {"command": "touch touched"}  # what waits still waits


@pytest.mark.parametrize("decision", [("--approve",), ("--reject", "no")])
@pytest.mark.parametrize("script", ['["Done."]', '[AuthenticationError("no key")]'])
async def test_a_decision_about_nothing_is_refused_and_nothing_runs(
    cli: Cli, script: str, decision: tuple[str, ...]
) -> None:
    await cli.play(script, "--id", "d")
    before = cli.log().read_bytes()
    ended = await cli.run("resume", "d", *decision, *NOWHERE)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: In 'd' nothing waits for your yes or no.\n"
    assert cli.log().read_bytes() == before


async def test_what_waits_is_shown_whole_where_nobody_can_be_asked(cli: Cli) -> None:
    long = f"echo {'x' * 400}"
    script = f'[calls({TOUCH}, call("terminal", command="{long}"))]'
    begun = await cli.play(script, "--confirm", "--id", "w")
    again = await cli.run("resume", "w", *NOWHERE)
    for ended in (begun, again):
        assert ended.code == 3
        assert "This waits for a yes or no. (1 of 2)\n │ terminal $ touch touched\n" in ended.out
        assert f"\n │ terminal $ {long}\n" in ended.out
        assert "(2 of 2)" in ended.out
        assert ended.out.index(long) < ended.out.index("--approve")


async def test_the_environment_says_where_the_model_is_now(cli: Cli) -> None:
    failed = await cli.run("run", "x", "-m", "mine", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0")
    assert failed.code == 1
    async with serve_provider(["Here.", "There."]) as provider:
        env = {"AGENTCORE_BASE_URL": provider.base_url}
        moved = await cli.run("resume", env=env)
        assert (moved.code, moved.err) == (0, ""), moved.out
        assert f"AGENTCORE_BASE_URL: now at {provider.base_url} (before: http://127.0.0.1:9/v1)\n" in moved.out
        # From now on that is what the log says: there is nothing to tell any more.
        same = await cli.run("resume", "and more", env={**env, "AGENTCORE_MODEL": "mine"})
        assert same.code == 0, same.err
        assert "AGENTCORE_" not in same.out


async def test_the_environment_names_another_model(cli: Cli) -> None:
    await cli.run("run", "x", "-m", "mine", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0")
    async with serve_provider(["Here."]) as provider:
        env = {"AGENTCORE_MODEL": "other", "AGENTCORE_BASE_URL": provider.base_url}
        ended = await cli.run("resume", env=env)
        assert json.loads(provider.requests[0].content)["model"] == "other"
    assert ended.code == 0, ended.err
    assert f"AGENTCORE_MODEL: now with openai/other at {provider.base_url} (before: openai/mine)\n" in ended.out


async def test_an_address_of_the_log_that_is_dead_is_said_to_be_of_the_log_within_seconds(cli: Cli) -> None:
    async with serve_provider([call("terminal", command="true"), "Done."]) as provider:
        address = provider.base_url
        assert (await cli.run("run", "x", "-m", "mine", "--base-url", address, "--id", "a")).code == 0
    ended = await cli.run("resume", "a", "go on")
    assert ended.code == 1
    assert f"no connection to {address}" in ended.err
    assert "The address came from the log" in ended.err
    assert "resume a --base-url URL" in ended.err
    retries = [event for event in cli.events() if event["kind"] == "retry"]
    assert len(retries) == RetryPolicy().refused_retries
    assert all(event["delay"] <= RetryPolicy().refused_wait for event in retries)


async def test_an_address_that_a_flag_names_is_not_said_to_be_of_the_log(cli: Cli) -> None:
    await cli.run("run", "x", "-m", "mine", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0")
    ended = await cli.run("resume", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0")
    assert ended.code == 1
    assert "from the log" not in ended.err


async def test_limits_are_lifted(cli: Cli) -> None:
    ended = await cli.play(f"[{TOUCH}, {TOUCH}]", "--steps", "1", "--id", "s")
    assert ended.code == 6
    assert "resume s --max-steps none" in ended.out
    async with serve_provider(["Done."]) as provider:
        address = ("--model", "mine", "--base-url", provider.base_url)
        lifted = await cli.run("resume", "s", *address, "--max-steps", "none", "--max-cost", "none", "--json")
    assert lifted.code == 0, lifted.err
    (limits,) = [
        line["update"]["limits"]
        for line in lifted.lines
        if line["kind"] == "conversation_state_update" and line["update"]["fact"] == "limits"
    ]
    assert (limits["steps"], limits["cost"]) == (None, None)


async def test_a_limit_on_an_unknown_price_is_refused_until_it_is_lifted(cli: Cli) -> None:
    await cli.play(f"[{TOUCH}]", "--confirm", "--id", "c")
    known = ("-m", "anthropic/claude-sonnet-4-5", "--max-cost", "1")
    assert (await cli.run("resume", "c", *known, env={"AGENTCORE_API_KEY": "k"})).code == 3
    before = cli.log().read_bytes()
    ended = await cli.run("resume", "c", *NOWHERE)
    assert (ended.code, ended.out) == (2, "")
    assert "nobody here knows what 'openai/mine' costs" in ended.err
    assert "--max-cost none" in ended.err
    assert cli.log().read_bytes() == before
    assert (await cli.run("resume", "c", *NOWHERE, "--max-cost", "none")).code == 3


async def killed(cli: Cli, provider: ChatProvider, *, before: Sequence[str] = ()) -> None:
    """Run a task until the model is asked, and kill the process."""
    run = cli.started("run", "Do it.", "-m", "mine", "--base-url", provider.base_url, "--id", "k")
    async with run as process:
        with anyio.fail_after(60):
            while not provider.requests:
                await anyio.sleep(0.02)
        for command in before:
            ended = await cli.run(*command.split(), *(NOWHERE if command == "resume" else ()))
            assert "cut off" not in ended.out
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()


async def test_one_whose_process_was_killed_is_cut_off_and_before_that_it_runs(cli: Cli) -> None:
    async with serve_provider([hang]) as provider:
        await killed(cli, provider, before=("conversations", "log show", "resume"))
    listed = await cli.run("conversations")
    assert "cut off" in listed.out
    assert "running" not in listed.out
    (row,) = (await cli.run("conversations", "--json")).lines
    assert row["status"] == "cut_off"
    shown = await cli.run("log", "show")
    assert "\ncut off: who wrote it is gone" in shown.out


async def test_one_word_that_is_no_id_may_be_a_message_and_it_is_said_how_to_say_it(cli: Cli) -> None:
    await cli.play('["Done."]', "--id", "only")
    ended = await cli.run("resume", "fix", *NOWHERE)
    assert ended.code == 2
    assert "id that begins with 'fix'" in ended.err
    assert "resume only fix\n" in ended.err
    told = await cli.run("resume", "fix", "and more", *NOWHERE)
    assert told.code == 2
    assert "resume only" not in told.err


async def test_hints_of_refusals_run_as_printed(cli: Cli) -> None:
    await cli.play('["Done."]', "--id", "e")
    lines = cli.log().read_bytes().splitlines(keepends=True)
    cli.log().write_bytes(lines[0])
    assert "agentcore resume e 'your task'" in (await cli.run("resume", *NOWHERE)).err
    cli.log().write_bytes(b"".join(lines))
    moved = cli.project.parent / "moved"
    cli.project.rename(moved)
    cli.project = moved
    gone = await cli.run("resume", "e", "go on", *NOWHERE)
    assert gone.code == 2
    assert "agentcore resume e --workspace FOLDER" in gone.err
