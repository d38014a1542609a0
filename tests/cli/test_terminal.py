"""On a terminal: approval, and the signals that end a run."""

from __future__ import annotations

import os
import pwd
import re
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psutil
import pytest
from tests.cli.conftest import wait_for

from agentcore.testing import Gate, call, calls, say
from living import until_gone

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tests.cli.conftest import Cli, Screen, Started

    from agentcore.testing import ScriptLine

CTRL_C, CTRL_D = "\x03", "\x04"
FOREVER = call("terminal", command="echo begun; exec sleep 1000")
TOUCH = call("terminal", command="touch touched")
ASK = "[y/n/e/l] "
LOGIN = pwd.getpwuid(os.getuid()).pw_name


def kinds(cli: Cli) -> list[str]:
    return [event["kind"] for event in cli.events()]


def descendants(pid: int) -> dict[int, str]:
    """Return the names of all child processes, by their ids."""
    found: dict[int, str] = {}
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found[process.pid] = process.name()
    return found


@contextmanager
def running(
    cli: Cli, *script: ScriptLine, program: Sequence[str] = (), flags: Sequence[str] = ()
) -> Generator[Started]:
    """Start a run with a scripted model, in a process on a terminal."""
    with cli.serve(*script) as provider:
        command = ("run", "x", "-m", "mine", "--base-url", provider.base_url, *flags)
        with cli.start(*command, program=program) as screen:
            yield screen


def approve(
    cli: Cli, script: Sequence[ScriptLine], *answers: tuple[str, str], env: dict[str, str] | None = None
) -> tuple[int, Screen]:
    """Run a script that asks for approval, and answer."""
    with cli.serve(*script) as provider:
        command = ("run", "Do it.", "-m", "mine", "--base-url", provider.base_url, "--confirm", "always")
        return cli.on_terminal(*command, answers=answers, env=env)


def test_ctrl_c_interrupts_and_saves_everything(cli: Cli) -> None:
    with running(cli, FOREVER) as screen:
        screen.shows("│ begun")
        # It prints this before it becomes the process that sleeps.
        wait_for(lambda: "sleep" in descendants(screen.process.pid).values())
        processes = descendants(screen.process.pid)
        screen.types(CTRL_C)
        screen.shows("Interrupting ...")
        screen.shows("interrupted; progress is saved")
        screen.shows(f"agentcore resume {cli.ids()[0][:15]}\n")
        assert screen.ends() == 4
    cli.portal.call(until_gone, *processes)
    assert kinds(cli)[-1] == "interrupt"
    assert kinds(cli).count("agent_error") == 1
    assert cli.run("log", "verify").code == 0


@pytest.mark.slow
def test_ctrl_c_during_a_reply_keeps_its_text_and_drops_the_connection(cli: Cli) -> None:
    reply = Gate().hold(say("I will never\nget to the end of this."), after=6)
    with cli.serve(reply) as provider:
        with cli.start("run", "x", "-m", "mine", "--base-url", provider.base_url) as screen:
            screen.shows("I will never")
            screen.types(CTRL_C)
            screen.shows("interrupted; progress is saved")
            assert screen.ends() == 4
        cli.portal.call(provider.idle)
    (interrupt,) = [event for event in cli.events() if event["kind"] == "interrupt"]
    assert interrupt["partial_text"].startswith("I will never")


@pytest.mark.slow
def test_a_second_ctrl_c_does_not_wait_for_an_event_loop_that_is_stuck(cli: Cli) -> None:
    program = (
        "import time, agentcore.cli.runner as runner\n"
        "async def stuck(self):\n    print('stuck', flush=True)\n    time.sleep(1000)\n"
        "runner.Runner._on_interrupt = stuck\n"
        "from agentcore.cli import main\nmain()\n"
    )
    with running(cli, FOREVER, program=[sys.executable, "-c", program]) as screen:
        screen.shows("│ begun")
        processes = descendants(screen.process.pid)
        screen.types(CTRL_C)
        screen.shows("stuck")
        screen.types(CTRL_C)
        screen.shows(f"Stopped. Log saved. Continue: agentcore resume {cli.ids()[0][:15]}\n")
        assert screen.ends() == 130
    cli.portal.call(until_gone, *processes)
    assert cli.run("log", "verify").code in {0, 3}  # it may have been killed while it wrote


@pytest.mark.slow
def test_the_process_ends_though_the_thread_of_a_tool_does_not(cli: Cli) -> None:
    program = (
        "import time, agentcore.cli.run as run\n"
        "from dataclasses import replace\n"
        "from agentcore import tool\n"
        "from agentcore.cli import main\n"
        "@tool\n"
        "def sleep_deaf(seconds: int) -> str:\n    'Sleep.'\n    time.sleep(seconds)\n    return 'slept'\n"
        "build = run.build_agent\n"
        "def with_tool(*args, **options):\n    agent = build(*args, **options)\n"
        "    return replace(agent, tools=(*agent.tools, sleep_deaf))\n"
        "run.build_agent = with_tool\n"
        "main()\n"
    )
    with running(cli, call("sleep_deaf", seconds=1000), program=[sys.executable, "-c", program]) as screen:
        screen.shows("sleep_deaf seconds=1000")
        screen.types(CTRL_C)
        assert screen.ends() == 4


UNDER_NOHUP = pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="hang-ups are ignored: nohup"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=UNDER_NOHUP)]
)
def test_a_signal_that_ends_programs_interrupts_and_is_in_the_exit_code(cli: Cli, number: int, code: int) -> None:
    with running(cli, FOREVER) as screen:
        screen.shows("│ begun")
        processes = descendants(screen.process.pid)
        os.kill(screen.process.pid, number)
        assert screen.ends() == code
    cli.portal.call(until_gone, *processes)
    assert kinds(cli)[-1] == "interrupt"


@pytest.mark.slow
def test_a_hangup_that_is_ignored_from_the_start_stays_ignored(cli: Cli) -> None:
    wait = call("terminal", command="echo begun; until [ -e go ]; do sleep 0.05; done")
    program = ["bash", "-c", 'trap "" HUP; exec "$@"', "-", sys.executable, "-m", "agentcore"]
    with running(cli, wait, "Done.", program=program) as screen:
        screen.shows("│ begun")
        os.kill(screen.process.pid, signal.SIGHUP)
        (cli.project / "go").touch()
        screen.shows("Done.")
        assert screen.ends() == 0


def test_yes_starts_the_call(cli: Cli) -> None:
    code, screen = approve(cli, [TOUCH, "Done."], ("Approve this call?", ""), (ASK, "y\n"))
    assert code == 0
    assert "Done." in screen.text
    assert (cli.project / "touched").exists()
    (approved,) = [event for event in cli.events() if event["kind"] == "action_approved"]
    assert approved["source"] == "user"
    assert approved["by"]


def test_no_is_told_to_the_model_with_its_reason(cli: Cli) -> None:
    code, screen = approve(
        cli,
        [TOUCH, TOUCH, "Then not."],
        (ASK, "n\n"), ("Reason, for the model", "It is Sunday.\n"), (f"rejected by {LOGIN}: It is Sunday.", ""),
        (ASK, "no not today either\n"),
    )  # fmt: skip
    assert code == 0
    assert f"rejected by {LOGIN}: not today either" in screen.text
    assert re.search(rf"rejected terminal seq \d+ by {LOGIN}: It is Sunday\.\n", cli.run("log", "show").out)
    assert not (cli.project / "touched").exists()
    reasons = [event["reason"] for event in cli.events() if event["kind"] == "user_reject"]
    assert reasons == ["It is Sunday.", "not today either"]


def test_arguments_are_edited_by_typing_them_and_checked(cli: Cli) -> None:
    waiting = call("terminal", command="touch touched", timeout=5)
    code, screen = approve(
        cli,
        [TOUCH, waiting, "Done."],
        (ASK, "e\n"), ("command is now: touch touched", ""), ("New value of command: ", "touch other\n"),
        ("terminal command=touch other", ""), (ASK, "y\n"),
        (ASK, "e\n"), ("Which one (command, timeout)? ", "nothing\n"), ("No such argument", ""),
        (ASK, "e\n"), ("Which one", "timeout\n"), ("New value of timeout: ", "many\n"), ("Not valid JSON", ""),
        (ASK, "e\n"), ("Which one", "timeout\n"), ("New value of timeout: ", '"many"\n'), (ASK, "y\n"),
        ("'terminal'", ""), (ASK, "y\n"),
    )  # fmt: skip
    assert code == 0, screen.text
    assert sorted(path.name for path in cli.project.iterdir()) == ["other", "touched"]
    approved, _ = [event for event in cli.events() if event["kind"] == "action_approved"]
    assert approved["arguments"] == {"command": "touch other"}


def test_arguments_are_edited_in_an_editor(cli: Cli) -> None:
    editor = cli.project.parent / "my editor"
    editor.write_text(
        f"#!{sys.executable}\nimport sys\npath = sys.argv[1]\ntext = open(path).read()\n"
        "open(path, 'w').write(text.replace('touched', 'edited'))\n"
    )
    editor.chmod(0o755)
    answers = [(ASK, "e\n"), ("terminal command=touch edited", ""), (ASK, "y\n")]
    code, screen = approve(cli, [TOUCH, "Done."], *answers, env={"EDITOR": f"'{editor}'"})
    assert code == 0, screen.text
    assert [path.name for path in cli.project.iterdir()] == ["edited"]


@pytest.mark.parametrize(
    ("editor", "complaint"), [("false", "exited with code 1"), ("/no/such/editor", "Cannot start the editor")]
)
def test_an_editor_that_fails_changes_nothing(cli: Cli, editor: str, complaint: str) -> None:
    answers = [(ASK, "e\n"), (complaint, ""), (ASK, "l\n")]
    assert approve(cli, [TOUCH], *answers, env={"EDITOR": editor})[0] == 3


def test_a_call_is_left_waiting_and_anything_else_is_asked_again(cli: Cli) -> None:
    again = "Type y (approve), n [reason] (reject), e (edit arguments) or l (decide later)."
    answers = [each for word in ("", "maybe", "yesterday", "?") for each in ((ASK, f"{word}\n"), (again, ""))]
    for last in ("l\n", CTRL_D):
        code, screen = approve(cli, [TOUCH], *answers, (ASK, last))
        answers = []
        assert code == 3
        assert "waiting for approval (1 call)" in screen.text
    assert not (cli.project / "touched").exists()


@pytest.mark.slow
def test_ctrl_c_leaves_a_call_waiting(cli: Cli) -> None:
    with running(cli, TOUCH, flags=("--confirm", "always")) as screen:
        screen.shows(ASK)
        screen.types(CTRL_C)
        screen.shows("waiting for approval (1 call)")
        assert screen.ends() == 3
    assert not (cli.project / "touched").exists()


def test_each_of_several_calls_is_asked_about(cli: Cli) -> None:
    touches = [call("terminal", command=f"touch {name}") for name in ("one", "two", "three")]
    answers = [("1 of 3", ""), (ASK, "y\n"), ("2 of 3", ""), (ASK, "n no\n"), ("3 of 3", ""), (ASK, "y\n")]
    assert approve(cli, [calls(*touches), "Done."], *answers)[0] == 0
    assert sorted(path.name for path in cli.project.iterdir()) == ["one", "three"]


def test_all_of_a_call_is_shown_before_it_is_approved(cli: Cli) -> None:
    long = call("terminal", command="true " + "x" * 1000 + "\rls \x1b[8m")
    _, screen = approve(cli, [long], (ASK, "l\n"))
    assert "x" * 1000 + "\\x0dls \\x1b[8m" in screen.text


def test_what_was_typed_before_the_question_is_not_its_answer(cli: Cli) -> None:
    read = call("terminal", command="read -t 2 x; true")
    answers = [(ASK, "y\n"), ("terminal $ read -t 2 x", "y\ny\n"), ("terminal $ touch touched", ""), (ASK, "l\n")]
    assert approve(cli, [read, TOUCH], *answers)[0] == 3
    assert not (cli.project / "touched").exists()


@pytest.mark.slow
def test_a_task_from_standard_input_still_asks_on_the_terminal(cli: Cli) -> None:
    (cli.project / "task.txt").write_text("Do it.\ny\n")
    with cli.serve(TOUCH, TOUCH, "Done.") as provider:
        options = f"-m mine --base-url {provider.base_url} --confirm always"
        command = f"{sys.executable} -m agentcore run - {options} < task.txt"
        with cli.start(program=["bash", "-c", command]) as screen:
            screen.shows(ASK)
            assert not (cli.project / "touched").exists()
            screen.types("n not yet\n")
            screen.shows(ASK)
            screen.types("y\n")
            assert screen.ends() == 0
    assert (cli.project / "touched").exists()


@pytest.mark.slow
def test_nobody_is_asked_where_standard_input_was_closed_to_questions(cli: Cli) -> None:
    with cli.serve(TOUCH) as provider:
        options = f"-m mine --base-url {provider.base_url} --confirm always"
        command = f"{sys.executable} -m agentcore run x {options} < /dev/null"
        with cli.start(program=["bash", "-c", command]) as screen:
            assert screen.ends() == 3


@pytest.mark.slow
def test_json_lines_and_questions_go_together(cli: Cli) -> None:
    with cli.serve(TOUCH, "Done.") as provider:
        command = (
            f"{sys.executable} -m agentcore run x -m mine --base-url {provider.base_url} --confirm always --json > out"
        )
        with cli.start(program=["bash", "-c", command]) as screen:
            screen.shows(ASK)
            screen.types("y\n")
            assert screen.ends() == 0
    lines = (cli.project / "out").read_text().splitlines()
    assert '"kind": "result"' in lines[-1]
    assert all(line.startswith("{") for line in lines)
