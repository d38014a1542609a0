"""Whatever a command writes, sets or destroys: the answer has its output, its exit code, and the next command works."""

from __future__ import annotations

import shlex
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from agentcore.errors import ToolError
from living import still_running, until_gone
from opened_tool import Terminal, line_in, open_terminal
from rounds import some_quick


async def works(terminal: Terminal) -> bool:
    told = await terminal("printf 'still %s' here")
    # What comes from the background may stand before it.
    return told.text.endswith("still here") and told.exit_code == 0


FAKES = [
    r"printf '\033]7717;0;0\037/fake\037\037\007\n'",
    r"printf '\033]7717;%s;0\037/fake\037\037\007\n' $(seq 4611686018427387904 4611686018427387950)",
    r"printf '\033]7717;%s;0\037/fake\037\037\007\n' $RANDOM$RANDOM$RANDOM$RANDOM",
    r"printf '\033]7717;'; printf '%s' 1234567890123456789; printf ';0\037/fake\037\037\007\n'",
    r"printf '\033]7717;'",
    r"grep -hao '[0-9]\{19\}' /proc/self/environ /proc/$$/environ | xargs -r printf '\033]7717;%s;0\037/x\037\037\007\n'",
    "printf 'bash-5.2$ \\n$ \\n# \\n>>> '",
    "printf '###PS1JSON###\\n{\"exit_code\": 0}\\n###PS1END###\\n'",
    "printf '\\033[6n\\033[c\\033]11;?\\007'",
]


@pytest.mark.parametrize("fake", some_quick(FAKES, 3))
async def test_no_output_passes_for_the_end(tmp_path: Path, fake: str, terminal: Terminal) -> None:
    told = await terminal(f"{fake}; sleep 0.2; echo; echo the end; (exit 9)")
    assert told.exit_code == 9
    assert told.cwd == str(tmp_path)
    assert told.text.endswith("\nthe end\n")
    assert await works(terminal)


MESSES = [
    "stty -echo",
    "stty echo",
    "stty sane",
    "stty raw",
    "stty raw echo",
    "stty raw -echo",
    "stty cbreak echo",
    "reset",
    "tput smcup",
]


@pytest.mark.parametrize(
    "setting",
    some_quick([
        *MESSES,
        "set -x", "set -v", "set -xv", "set -u", "set -f", "set -C", "set -a", "set -o vi", "set -o emacs", "set -o posix", "set -m",
        "set +m", "set -o history; set -H", "IFS=a0; OLDIFS=1", "shopt -s extglob nocasematch nullglob failglob", "shopt -s xpg_echo",
        "PS1='(venv) $ ' PS2='> ' PS0='zero' PS4='+++'", "PROMPT_COMMAND='echo prompt'", "PROMPT_COMMAND=(date true)",
        "unset PROMPT_COMMAND PS1 PS2 PWD OLDPWD", "PWD=/nowhere", "unset PATH", "unset HOME", "alias builtin=false eval=false local=false set=false",
        "exec 5>&1", "exec 2>errors.txt", "trap 'echo caught' USR1", "trap '' INT TERM HUP", "umask 777", "export -n PATH",
        "LC_ALL=C", "LC_ALL=nowhere 2>/dev/null", "COLUMNS=1 LINES=1", "ulimit -c 0", "hash -r", "set -- a b c", "TMOUT=0",
        "builtin() { :; }; unset -f builtin", "cd() { builtin cd \"$@\"; }", "read() { echo mine; }", "printf() { command printf \"$@\"; }",
        "readonly python=/usr/bin/python flags=-x REPLY=1 IFS PROMPT_COMMAND=date PS1='$ '", "declare -n python=HOME flags=PWD",
        *(f"{name}() {{ echo mine; }}" for name in ("command", "builtin", "set", "unset", "local", "return", "break", "hash", "read", "eval")),
        "unset -v __agentcore_nonce __agentcore_flags", "unset -f __agentcore_report", "set -T; trap 'echo traced' DEBUG; trap 'echo back' RETURN",
    ], 6),
)  # fmt: skip
async def test_whatever_is_set_the_next_command_works(tmp_path: Path, setting: str, terminal: Terminal) -> None:
    await terminal(f"export TERM=xterm; {setting}", timeout=60)
    for _ in range(2):
        told = await terminal("printf '%s' alive")
        assert told.exit_code == 0
        assert told.text.endswith("alive")
        assert "agentcore" not in told.text
        assert told.cwd == str(tmp_path)
    if setting in MESSES:
        told = await terminal("stty -a | grep -c -w -e -echo -e icanon -e opost; read -t 0; echo $?", timeout=60)
        assert told.text.split()[-1] == "1"


@pytest.mark.parametrize(
    ("command", "code"),
    some_quick([
        ("exit 3", 3), ("set -e; false", 1), ("exec true", 0), ("exec sh -c 'exit 4'", 4), ("kill -9 $$", 137), ("kill -9 0", 137),
        ("exec sh -c 'kill -9 $$'", 137), ("trap 'echo bye' EXIT; exit 5", 5), ("trap 'exit 6' ERR; false", 6), ("exec /bin/false", 1),
    ], 4),
)  # fmt: skip
async def test_the_end_of_the_shell_is_told_and_the_next_command_gets_a_new_one(
    tmp_path: Path, command: str, code: int, terminal: Terminal
) -> None:
    await terminal("cd /; A=1")
    told = await terminal(f"echo before; {command}", timeout=60)
    assert told.text.startswith("before\n")
    assert (told.shell_ended, told.exit_code) == (True, code)
    assert "The shell exited " in str(told.to_content())
    if code == 5:
        assert "bye\n" in told.text
    fresh = await terminal("echo [$A]; pwd")
    assert fresh.text.endswith(f"[]\n{tmp_path}\n")
    assert fresh.new_shell
    assert not (await terminal("true")).new_shell


async def test_a_shell_whose_input_is_taken_away_ends_after_the_command(terminal: Terminal) -> None:
    told = await terminal("A=1; exec < /dev/null; echo the end")
    assert (told.text, told.exit_code, told.shell_ended) == ("the end\n", 0, False)
    # The next command finds it gone, or on its way.
    for _ in range(3):
        with suppress(ToolError):  # it took no input any more
            told = await terminal("echo [$A]")
        if told.new_shell:
            break
    assert told.text.endswith("[]\n")


async def test_a_background_process_that_keeps_the_terminal_holds_nothing_up(tmp_path: Path) -> None:
    async with open_terminal(tmp_path) as terminal:
        told = await terminal(
            "setsid sleep 1000 & echo $! > pid; (sleep 1000 &); nohup sleep 1000 >/dev/null 2>&1 & echo started"
        )
        assert told.exit_code == 0
        assert "started\n" in told.text
        assert await works(terminal)
        ended = await terminal("exit 0", timeout=60)
        assert ended.shell_ended
        pid = int(await line_in(tmp_path / "pid"))
        await until_gone(pid)
    assert not still_running(pid)


@pytest.mark.parametrize("shell", some_quick(["sh -i", "dash -i", "bash --norc -i"], 3))
async def test_another_shell_in_its_place_is_a_program_that_runs_until_it_ends(shell: str, hasty: Terminal) -> None:
    await run_in_its_place(shell, hasty)


async def test_zsh_in_its_place_is_such_a_program_too(hasty: Terminal) -> None:
    await run_in_its_place("zsh -f -i", hasty)


async def run_in_its_place(shell: str, hasty: Terminal) -> None:
    name = shell.partition(" ")[0]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed; .ci/run installs it (apt-get install {name})")
    assert (await hasty(f"exec {shell}")).running
    shown = (await hasty("echo de''ep", is_input=True, timeout=0.05)).text
    while "deep" not in shown:
        shown += (await hasty("", timeout=0.05)).text
    ended = await hasty("exit 3", is_input=True, timeout=60)
    assert (ended.shell_ended, ended.exit_code) == (True, 3)
    assert (await hasty("echo new")).new_shell


@pytest.mark.slow
async def test_a_daemon_that_left_the_terminal_open_does_not_hold_its_end_up(tmp_path: Path) -> None:
    daemon = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nprint(os.getpid(), file=open('pid', 'w'), flush=True)\ntime.sleep(1000)"
    async with open_terminal(tmp_path) as terminal:
        told = await terminal(f"python3 -c {shlex.quote(daemon)}; while [ ! -s pid ]; do sleep 0.01; done; (exit 4)")
        assert told.exit_code == 4
        pid = int(await line_in(tmp_path / "pid"))
        assert still_running(pid) == [pid]
        assert await works(terminal)
        assert (await terminal("exit 2", timeout=60)).shell_ended
    assert still_running(pid) == []
