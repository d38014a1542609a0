"""On a real terminal: Ctrl-C, and saying yes and no."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import psutil
import pytest

from living import until_gone

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

CTRL_C, CTRL_D = "\x03", "\x04"
FOREVER = 'call("terminal", command="echo begun; exec sleep 1000")'
TOUCH = 'call("terminal", command="touch touched")'


def kinds(cli: Cli) -> list[str]:
    return [event["kind"] for event in cli.events()]


def descendants(pid: int) -> dict[int, str]:
    """Give the names of all that a process started, by their numbers."""
    found: dict[int, str] = {}
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found[process.pid] = process.name()
    return found


async def test_ctrl_c_interrupts_and_keeps_everything(cli: Cli) -> None:
    async with cli.on_terminal(script=f"[{FOREVER}]", fresh=True) as screen:
        await screen.shows("│ begun")
        with anyio.fail_after(30):
            # It says that it has begun before it becomes what sleeps.
            while "sleep" not in descendants(screen.process.pid).values():
                await anyio.sleep(0.02)
        processes = descendants(screen.process.pid)
        await screen.types(CTRL_C)
        await screen.shows("interrupting ...")
        await screen.shows("interrupted, and everything so far is kept")
        await screen.shows(f"agentcore resume {cli.ids()[0]}")
        assert await screen.ends() == 4
    await until_gone(*processes)
    assert kinds(cli)[-1] == "interrupt"
    assert kinds(cli).count("agent_error") == 1
    assert (await cli.run("log", "verify")).code == 0


async def test_ctrl_c_while_the_model_speaks_keeps_what_it_said(cli: Cli) -> None:
    script = '[Gate().hold(say("I will never get to the end of this."), after=4)]'
    async with cli.on_terminal(script=script) as screen:
        await screen.shows("I will never")
        await screen.types(CTRL_C)
        assert await screen.ends() == 4
    (interrupt,) = [event for event in cli.events() if event["kind"] == "interrupt"]
    assert interrupt["partial_text"].startswith("I will never")


async def test_a_second_ctrl_c_leaves_at_once(cli: Cli) -> None:
    script = """[calls(call("terminal", command="trap '' TERM INT HUP; echo begun; while :; do sleep 100; done"))]"""
    async with cli.on_terminal(script=script) as screen:
        await screen.shows("│ begun")
        processes = descendants(screen.process.pid)
        await screen.types(CTRL_C)
        await screen.shows("interrupting ...")
        await screen.types(CTRL_C)
        # 4 if the first one was through with everything before the second one came.
        assert await screen.ends() in {4, 130}
    await until_gone(*processes)
    assert (await cli.run("log", "verify")).code in {0, 3}


async def test_a_second_ctrl_c_does_not_wait_for_an_event_loop_that_is_stuck(cli: Cli) -> None:
    program = (
        "import sys, time\n"
        "sys.path.insert(0, sys.argv.pop(1))\n"
        "import scripted_program, agentcore.cli.runner as work\n"
        "async def stuck(self):\n"
        "    print('stuck', flush=True)\n"
        "    time.sleep(1000)\n"
        "work._Work._interrupt = stuck\n"
        "scripted_program.main()\n"
    )
    folder = os.path.dirname(__file__)
    async with cli.on_terminal(program=[sys.executable, "-c", program, folder, f"[{FOREVER}]"]) as screen:
        await screen.shows("│ begun")
        processes = descendants(screen.process.pid)
        await screen.types(CTRL_C)
        await screen.shows("stuck")
        await screen.types(CTRL_C)
        await screen.shows(f"left at once; the log is kept. go on: agentcore resume {cli.ids()[0]}")
        assert await screen.ends() == 130
    await until_gone(*processes)


async def test_ctrl_c_before_it_begins_says_that_and_how_to_go_on(cli: Cli) -> None:
    program = (
        "import sys, anyio\n"
        "sys.path.insert(0, sys.argv.pop(1))\n"
        "import scripted_program, agentcore.cli.runner as work\n"
        "async def begin(self):\n"
        "    print('here', flush=True)\n"
        "    await anyio.sleep_forever()\n"
        "work._Work.do = begin\n"
        "scripted_program.main()\n"
    )
    arguments = [os.path.dirname(__file__), '["Done."]', "--id", "early"]
    async with cli.on_terminal(program=[sys.executable, "-c", program, *arguments]) as screen:
        await screen.shows("here")
        await screen.types(CTRL_C)
        await screen.shows("interrupted before it began")
        await screen.shows("go on: agentcore resume early")
        assert await screen.ends() == 130


async def test_the_process_ends_though_the_thread_of_a_tool_does_not(cli: Cli) -> None:
    async with cli.on_terminal(script='[call("sleep_deaf", seconds=1000)]', arguments=["--deaf"]) as screen:
        await screen.shows("sleep_deaf seconds=1000")
        await screen.types(CTRL_C)
        await screen.shows("can't be stopped")
        assert await screen.ends() == 4


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_system_that_ends_programs_interrupts_and_reads_its_signal(cli: Cli, number: int, code: int) -> None:
    async with cli.on_terminal(script=f"[{FOREVER}]") as screen:
        await screen.shows("│ begun")
        processes = descendants(screen.process.pid)
        os.kill(screen.process.pid, number)
        assert await screen.ends() == code
    await until_gone(*processes)
    assert kinds(cli)[-1] == "interrupt"


async def test_a_hangup_that_is_ignored_from_the_start_stays_ignored(cli: Cli) -> None:
    wait = 'call("terminal", command="echo begun; until [ -e go ]; do sleep 0.05; done")'
    program = ["bash", "-c", 'trap "" HUP; exec "$@"', "-", *cli.scripted(f'[{wait}, "Done."]')]
    async with cli.on_terminal(program=program) as screen:
        await screen.shows("│ begun")
        os.kill(screen.process.pid, signal.SIGHUP)
        (cli.project / "go").touch()
        await screen.shows("Done.")
        assert await screen.ends() == 0


async def test_yes_starts_the_call(cli: Cli) -> None:
    async with cli.on_terminal(script=f'[{TOUCH}, "Done."]', arguments=["--confirm"]) as screen:
        await screen.shows("May it do this?")
        await screen.shows("terminal $ touch touched")
        await screen.shows("[y/n/e/l] ")
        assert not (cli.project / "touched").exists()
        await screen.types("y\n")
        await screen.shows("Done.")
        assert await screen.ends() == 0
    assert (cli.project / "touched").exists()
    (approved,) = [event for event in cli.events() if event["kind"] == "action_approved"]
    assert approved["source"] == "user"
    assert approved["by"]


async def test_no_is_told_to_the_model_with_its_reason(cli: Cli) -> None:
    async with cli.on_terminal(script=f'[{TOUCH}, {TOUCH}, "Then not."]', arguments=["--confirm"]) as screen:
        await screen.shows("[y/n/e/l] ")
        await screen.types("n\n")
        await screen.shows("Why not?")
        await screen.types("It is Sunday.\n")
        await screen.shows("rejected: It is Sunday.")
        await screen.shows("[y/n/e/l] ")
        await screen.types("no not today either\n")
        await screen.shows("rejected: not today either")
        await screen.shows("Then not.")
        assert await screen.ends() == 0
    assert not (cli.project / "touched").exists()
    reasons = [event["reason"] for event in cli.events() if event["kind"] == "user_reject"]
    assert reasons == ["It is Sunday.", "not today either"]


async def test_arguments_can_be_changed_by_typing_them(cli: Cli) -> None:
    async with cli.on_terminal(script=f'[{TOUCH}, "Done."]', arguments=["--confirm"]) as screen:
        await screen.shows("[y/n/e/l] ")
        await screen.types("e\n")
        await screen.shows("command is now: touch touched")
        await screen.shows("New value of command: ")
        await screen.types("touch other\n")
        await screen.shows("terminal command=touch other")
        await screen.shows("[y/n/e/l] ")
        await screen.types("y\n")
        await screen.shows("Done.")
        assert await screen.ends() == 0
    assert [path.name for path in cli.project.iterdir()] == ["other"]
    (approved,) = [event for event in cli.events() if event["kind"] == "action_approved"]
    assert approved["arguments"] == {"command": "touch other"}


async def test_arguments_can_be_changed_in_an_editor(cli: Cli) -> None:
    editor = cli.project.parent / "my editor"
    editor.write_text(
        f"#!{sys.executable}\nimport sys\npath = sys.argv[1]\ntext = open(path).read()\n"
        "open(path, 'w').write(text.replace('touched', 'edited'))\n"
    )
    editor.chmod(0o755)
    env = {"EDITOR": f"'{editor}'"}
    async with cli.on_terminal(script=f'[{TOUCH}, "Done."]', arguments=["--confirm"], env=env) as screen:
        await screen.shows("[y/n/e/l] ")
        await screen.types("e\n")
        await screen.shows("terminal command=touch edited")
        await screen.shows("[y/n/e/l] ")
        await screen.types("y\n")
        assert await screen.ends() == 0
    assert [path.name for path in cli.project.iterdir()] == ["edited"]


@pytest.mark.parametrize(("editor", "complaint"), [("false", "ended with 1"), ("/no/such/editor", "can't be started")])
async def test_an_editor_that_fails_changes_nothing(cli: Cli, editor: str, complaint: str) -> None:
    env = {"EDITOR": editor}
    async with cli.on_terminal(script=f'[{TOUCH}, "Done."]', arguments=["--confirm"], env=env) as screen:
        await screen.shows("[y/n/e/l] ")
        await screen.types("e\n")
        await screen.shows(complaint)
        await screen.shows("[y/n/e/l] ")
        await screen.types("l\n")
        assert await screen.ends() == 3


async def test_arguments_that_do_not_fit_the_tool_are_said_and_asked_about_again(cli: Cli) -> None:
    deaf = 'call("sleep_deaf", seconds=0)'
    async with cli.on_terminal(script=f'[{deaf}, "Done."]', arguments=["--deaf", "--confirm"]) as screen:
        await screen.shows("[y/n/e/l] ")
        await screen.types("e\n")
        await screen.shows("New value of seconds: ")
        await screen.types('"many"\n')
        await screen.shows("[y/n/e/l] ")
        await screen.types("y\n")
        await screen.shows("do not fit 'sleep_deaf'")
        await screen.shows("[y/n/e/l] ")
        await screen.types("y\n")
        await screen.shows("Done.")
        assert await screen.ends() == 0


@pytest.mark.parametrize("answer", ["l\n", CTRL_D, CTRL_C])
async def test_a_call_can_be_left_waiting(cli: Cli, answer: str) -> None:
    async with cli.on_terminal(script=f"[{TOUCH}]", arguments=["--confirm"]) as screen:
        await screen.shows("[y/n/e/l] ")
        await screen.types(answer)
        await screen.shows("waits for your yes or no to 1 call")
        assert await screen.ends() == 3
    assert not (cli.project / "touched").exists()
    assert kinds(cli)[-1] == "conversation_state_update"


async def test_an_empty_answer_is_no_answer(cli: Cli) -> None:
    async with cli.on_terminal(script=f"[{TOUCH}]", arguments=["--confirm"]) as screen:
        for answer, said in (
            ("", ""),
            ("maybe", "'maybe' is no answer. "),
            ("yesterday", "'yesterday' is no answer. "),
        ):
            await screen.shows("[y/n/e/l] ")
            await screen.types(f"{answer}\n")
            await screen.shows(f"{said}Answer y (yes: it may), n (no, and why), e (edit ")
        await screen.shows("[y/n/e/l] ")
        assert not (cli.project / "touched").exists()
        await screen.types("l\n")
        assert await screen.ends() == 3


async def test_each_of_several_calls_is_asked_about(cli: Cli) -> None:
    one, two, three = (f'call("terminal", command="touch {name}")' for name in ("one", "two", "three"))
    async with cli.on_terminal(script=f'[calls({one}, {two}, {three}), "Done."]', arguments=["--confirm"]) as screen:
        for which, answer in (("1 of 3", "y\n"), ("2 of 3", "n no\n"), ("3 of 3", "y\n")):
            await screen.shows(which)
            await screen.shows("[y/n/e/l] ")
            await screen.types(answer)
        await screen.shows("Done.")
        assert await screen.ends() == 0
    assert sorted(path.name for path in cli.project.iterdir()) == ["one", "three"]


async def test_all_of_what_is_asked_about_is_shown(cli: Cli) -> None:
    script = r"""[call("terminal", command="true " + "x" * 1000 + "\rls \x1b[8m")]"""
    async with cli.on_terminal(script=script, arguments=["--confirm"]) as screen:
        shown = await screen.shows("[y/n/e/l] ")
        await screen.types("l\n")
        assert await screen.ends() == 3
    said = "".join(shown.split("\n"))
    assert "x" * 1000 + "\\x0dls \\x1b[8m" in said


async def test_json_and_questions_go_together(cli: Cli) -> None:
    out = cli.project.parent / "out.jsonl"
    program = ["bash", "-c", '"$@" > "$0"', str(out), *cli.scripted(f'[{TOUCH}, "Done."]'), "--confirm", "--json"]
    async with cli.on_terminal(program=program) as screen:
        await screen.shows("[y/n/e/l] ")
        await screen.types("y\n")
        assert await screen.ends() == 0
    lines = (await anyio.Path(out).read_text()).splitlines()
    assert '"kind": "result"' in lines[-1]
    assert all(line.startswith("{") for line in lines)


async def test_what_was_typed_before_the_question_is_no_answer(cli: Cli) -> None:
    script = f'[calls(call("terminal", command="read -t 2 x; true")), {TOUCH}]'
    async with cli.on_terminal(script=script, arguments=["--confirm"]) as screen:
        await screen.shows("[y/n/e/l] ")
        await screen.types("y\n")
        await screen.shows("terminal $ read -t 2 x")
        await screen.types("y\ny\n")
        await screen.shows("terminal $ touch touched")
        await screen.shows("[y/n/e/l] ")
        await screen.types("l\n")
        assert await screen.ends() == 3
    assert not (cli.project / "touched").exists()
