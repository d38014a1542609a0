"""One program, run to its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import Agent, Conversation, ObservationEvent
from agentcore.errors import PathError, ToolError, WorkspaceError
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import OUTPUT_LIMIT, ToolSpec, read_call
from agentcore_tools import RunAction, run_tool
from living import still_running, until_gone
from opened_tool import Run, line_in, open_tool


@asynccontextmanager
async def open_run(folder: Path, secrets: dict[str, str] | None = None, **settings: Any) -> AsyncGenerator[Run]:
    async with open_tool(run_tool(**settings), folder, secrets) as opened:
        yield opened


async def test_output_and_errors_are_apart_and_the_exit_code_is_told(run: Run) -> None:
    told = await run.call(command="echo out; echo err >&2; exit 3")
    assert (told.stdout, told.stderr, told.exit_code, told.signal) == ("out\n", "err\n", 3, None)
    assert told.is_error
    (content,) = told.to_content()
    assert str(content).startswith("out\n[Standard error:]\nerr\n[exit code 3; ")
    (silent,) = (await run.call(command="true")).to_content()
    assert str(silent).startswith("(no output)\n[exit code 0; ")


async def test_arguments_in_a_list_are_read_by_no_shell(run: Run) -> None:
    told = await run.call(command=["printf", "%s|", "$HOME", "a b", "*", "it's"])
    assert told.stdout == "$HOME|a b|*|it's|"
    missing = await run.call(command=["no-such-program"])
    assert missing.exit_code == 127
    assert "no-such-program" in missing.stderr


async def test_folder_variables_and_input_are_given(tmp_path: Path, run: Run) -> None:
    (tmp_path / "sub").mkdir()
    told = await run.call(command="pwd; echo $A; cat", cwd="sub", env=["A=b c=d", "B="], stdin="grün\n")
    assert told.stdout == f"{tmp_path}/sub\nb c=d\ngrün\n"
    assert (await run.call(command="cat; echo end")).stdout == "end\n"
    with pytest.raises(PathError):
        await run.call(command="true", cwd="nowhere")
    with pytest.raises(WorkspaceError):
        await run.call(command=["true", "\0"])


async def test_nothing_is_kept_from_one_call_to_the_next_and_nothing_is_left(tmp_path: Path, run: Run) -> None:
    await run.call(command="setsid sleep 1000 & echo $! > pid; cd /; A=1")
    await until_gone(int((tmp_path / "pid").read_text()))
    assert (await run.call(command="echo [$A]; pwd")).stdout == f"[]\n{tmp_path}\n"


async def test_the_signal_that_ended_it_is_named(run: Run) -> None:
    told = await run.call(command="kill -KILL $$")
    assert (told.exit_code, told.signal) == (137, "SIGKILL")
    assert "exit code 137 (SIGKILL)" in str(told.to_content())
    assert (await run.call(command="exit 255")).signal is None


async def test_what_takes_too_long_is_ended_and_what_it_wrote_is_told(tmp_path: Path) -> None:
    async with open_run(tmp_path) as run:
        told = await run.call(command="echo begun; (setsid sleep 1000 & echo $! > pid); sleep 1000", timeout=1)
        assert (told.stdout, told.timed_out, told.is_error) == ("begun\n", True, True)
        assert "s; killed with its children.]" in str(told.to_content())
        assert still_running(int((tmp_path / "pid").read_text())) == []
    async with open_run(tmp_path, timeout_seconds=0.5) as run:
        assert (await run.call(command="sleep 1000")).timed_out


async def test_cancelling_a_call_ends_it_with_all_that_it_started(tmp_path: Path, run: Run) -> None:
    pid = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: run.call(command="setsid sleep 1000 & echo $! > pid; sleep 1000"))
        pid = int(await line_in(tmp_path / "pid"))
        tasks.cancel_scope.cancel()
    assert still_running(pid) == []


async def test_long_output_is_on_disk_and_shown_from_both_ends(run: Run) -> None:
    told = await run.call(command="seq 30000; seq 30001 60000 >&2")
    numbers = [[f"{number}\n" for number in range(first, first + 30_000)] for first in (1, 30_001)]
    for text, path, written in (
        (told.stdout, told.stdout_path, numbers[0]),
        (told.stderr, told.stderr_path, numbers[1]),
    ):
        assert path is not None
        assert text.startswith("".join(written[:10]))
        assert text.endswith("".join(written[-10:]))
        assert (await run.workspace.read(path)).decode() == "".join(written)
    (content,) = told.to_content()
    assert len(str(content)) < OUTPUT_LIMIT
    # One that is alone has all the room.
    assert (await run.call(command="head -c 25000 /dev/zero | tr '\\0' x")).stdout == "x" * 25_000


async def test_bytes_that_are_no_text_are_replaced(run: Run) -> None:
    told = await run.call(command=r"printf 'a\0b\xff\xc3'; sleep 0.1; printf '\xa9\xe2\x82'")
    assert told.stdout == "a\u2400b\ufffdé\ufffd"


async def test_a_secret_is_there_for_the_command_that_names_it_alone(tmp_path: Path) -> None:
    async with open_run(tmp_path, {"TOKEN": "correct horse", "BAD": "correct\0horse"}) as run:
        assert (await run.call(command='echo "$TOKEN"')).stdout == "correct horse\n"
        assert (await run.call(command=["sh", "-c", "echo $TOKEN"])).stdout == "correct horse\n"
        assert (await run.call(command="env | grep -c horse")).stdout == "0\n"
        with pytest.raises(ToolError, match="BAD"):
            await run.call(command="echo $BAD")


@pytest.mark.parametrize(
    ("name", "arguments", "action"),
    [
        ("run", {"command": "ls"}, {"command": "ls"}),
        ("run", {"command": "ls", "description": "list", "timeout_ms": 1500}, {"command": "ls", "timeout": 1.5}),
        ("exec", {"cmd": ["ls", "-l"], "workdir": "/"}, {"command": ("ls", "-l"), "cwd": "/"}),
        ("run", {"command": "git -C x", "args": ["log", "a b"]}, {"command": ("git", "-C", "x", "log", "a b")}),
        ("run", {"command": "ls", "environment": {"A": "b"}}, {"command": "ls", "env": ("A=b",)}),
        ("subprocess", {"argv": ["cat"], "input": "x", "timeout_seconds": "3"}, {"command": ("cat",), "stdin": "x", "timeout": 3}),
    ],
)  # fmt: skip
def test_a_call_is_read_as_it_was_meant(name: str, arguments: dict[str, Any], action: dict[str, Any]) -> None:
    read = read_call(name, arguments, [run_tool()])
    assert read.problem is None
    assert read.action == RunAction(**action)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "`command` is missing."),
    ({"command": ""}, '`command` must have at least 1 character, not "".'),
    ({"command": []}, "`command` must have at least 1 item, not []."),
    ({"command": 5}, "`command` must be text or a list, not 5."),
    ({"command": {"a": 1}}, '`command` must be text or a list, not {"a": 1}.'),
    ({"command": ["ls", {}]}, "`command[1]` must be text, not {}."),
    ({"command": "ls", "timeout": 0}, "`timeout` must be greater than or equal to 0.001, not 0."),
    ({"command": "ls", "timeout": "soon"}, '`timeout` must be a number, not "soon".'),
    ({"command": "ls", "env": ["A"]}, "`env[0]` must match pattern '^[^=]+=', not \"A\"."),
    ({"command": "ls", "env": 5}, "`env` must be a list, not 5."),
    ({"command": "ls", "run_in_background": True}, "use a terminal for what goes on."),
]


@pytest.mark.parametrize(("arguments", "problem"), REFUSED)
def test_a_call_that_can_not_be_meant_is_answered_in_plain_words(arguments: dict[str, Any], problem: str) -> None:
    read = read_call("run", arguments, [run_tool()])
    assert read.code == "bad_arguments"
    assert read.problem is not None
    assert problem in read.problem
    for word in ("tuple", "valid", "Input", "string should"):
        assert word not in read.problem.partition("Given:")[0]


async def test_escape_sequences_are_resolved_as_in_a_terminal(run: Run) -> None:
    command = r"printf '\033[31mred\033[0m\n10%%\r100%%\nab\bc\n\033]0;title\007\033[1m'; printf '\033[32mgreen\n' >&2"
    told = await run.call(command=command)
    assert (told.stdout, told.stderr) == ("red\n100%\nac\n", "green\n")
    assert "\033" not in "".join(run.host.shown)
    told = await run.call(command=r"for i in $(seq 9000); do printf '\033[3%dm%d\033[0m\n' $((i % 8)) $i; done")
    assert told.stdout_path is not None
    whole = (await run.workspace.read(told.stdout_path)).decode()
    assert whole == "".join(f"{number}\n" for number in range(1, 9001))


def test_it_travels_by_name_with_what_is_not_as_usual() -> None:
    assert run_tool().spec == ToolSpec(name="run")
    assert run_tool(timeout_seconds=5, keep_bytes=0).spec == ToolSpec(
        name="run", params={"timeout_seconds": 5, "keep_bytes": 0}
    )
    with pytest.raises(ValueError, match="some time"):
        run_tool(timeout_seconds=0)


async def test_in_a_conversation_its_end_is_recorded(tmp_path: Path) -> None:
    llm = ScriptedLLM([call("run", command=["sh", "-c", "echo hello; exit 4"]), say("ok")])
    with anyio.fail_after(60):
        async with Conversation(Agent(llm=llm, tools=[run_tool()]), tmp_path) as conversation:
            await conversation.run("go")
            (told,) = [event for event in conversation.state.events if isinstance(event, ObservationEvent)]
    assert told.text.startswith("hello\n[exit code 4;")
    assert (told.data["exit_code"], told.data["signal"], told.is_error) == (4, None, True)
    assert "stdout" not in told.data
