"""One real bash, by a table: what is called, and what is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentcore.stuck import STILL_RUNNING
from agentcore_tools import TerminalObservation
from opened_tool import Terminal, open_terminal
from programs import needs
from rounds import some_quick


class Step(NamedTuple):
    """A call, and the fields of its answer; of `starts`, `ends`, `has` and `lacks`, how its content is."""

    call: dict[str, Any]
    answer: dict[str, Any]


def do(command: str = "", text: str | None = None, **given: Any) -> Step:
    names = {"is_input", "enter", "timeout", "session", "reset"}
    call = {"command": command, **{name: value for name, value in given.items() if name in names}}
    answer = {name: value for name, value in given.items() if name not in names}
    if not answer.get("running"):
        call.setdefault("timeout", 60)  # an end is waited for
    return Step(call, answer if text is None else {"text": text, **answer})


def key(name: str, text: str | None = None, **given: Any) -> Step:
    return do(name, text, is_input=True, **given)


NOTHING_RUNS = [
    each._replace(answer={"problem": "nothing_running", "is_error": True, "running": False})
    for each in (do(""), key("yes"), key("C-c"), do(" \n"))
]

# Each name is a sentence. ROOT is the workspace's folder; a terminal counts as silent after 0.3 seconds.
SCENARIOS: dict[str, list[Step]] = {
    "directory, variables, functions and aliases stay": [
        do("mkdir sub; cd sub; export A=1; B=2; f() { echo f$A$B; }; alias greet='echo hello'"),
        do("pwd; f; greet; env | grep '^[AB]='", "ROOT/sub\nf12\nhello\nA=1\n", cwd="ROOT/sub"),
    ],
    "the answer says exit code and directory, and Python where that has changed": [
        do("mkdir bin; printf '#!/bin/sh\\n' > bin/python; chmod +x bin/python; PATH=$PWD/bin:$PATH", content="(no output)\n[exit code 0, of the last of 4 commands; in ROOT; python is ROOT/bin/python]"),
        do("echo out; false", content="out\n[exit code 1, of the last of 2 commands; in ROOT]"),
        do("rm bin/python; hash -r", has="; python is "),
    ],
    "that there were several commands is told with the end of the last": [
        do("false\nread\necho done", running=True, timeout=0.2, commands=1),
        key("x", exit_code=0, commands=3, starts="done\n[exit code 0, of the last of 3 commands; in "),
        do("echo one", commands=1),
    ],
    "a silent command is told to be running and goes on": [
        do("mkfifo go; true", session="other"),
        do("echo first; read line < go; echo got $line; (exit 3)", "first\n", ends="[Still running; no output for 0.3 s.]", running=True, timed_out="quiet", waited=0.3, is_error=False, exit_code=None),
        do("echo it > go", session="other"),
        do("", "got it\n", exit_code=3, running=False),
        do("", problem="nothing_running"),
    ],
    "a timeout ends the wait and not the command": [
        do("while :; do echo again; sleep 0.05; done", timeout=1, running=True, timed_out="limit", waited=1, ends="[Still running after 1 s.]", has="again\n"),
        do("", timeout=0, running=True),
    ],
    "a timeout takes the place of the wait for silence": [do("sleep 0.6; echo done", "done\n", running=False)],
    "another command is not run and the output so far is told": [
        do("cat", running=True),
        do("touch made", problem="still_running", running=True, is_error=True, ends="type with is_input (C-c interrupts), or use another session.]"),
        key("C-d", exit_code=0),
        do("ls", ""),
    ],
    "text is typed with Enter behind it": [
        do("read -p 'name? ' name; read -p 'age? ' age; echo \"<$name> <$age>\"", "name? ", running=True),
        key("Ada L.", "age? ", timeout=0.5, running=True),
        key("36", "<Ada L.> <36>\n", exit_code=0),
    ],
    "several lines are typed one after the other": [
        do("read a; read b; echo $b-$a", running=True),
        key("x\ny\n", "y-x\n"),
    ],
    "the end of the input is a key": [
        do("cat > typed.txt; echo end", running=True),
        key("a line", timeout=0, running=True),
        key("C-d", "end\n"),
        do("cat typed.txt", "a line\n"),
    ],
    "the history begins with what the agent keeps in it": [do("history", ""), do("set -o history; true"), do("echo one", "one\n")],
    "the directory is known without its variable": [
        do("mkdir sub; unset DIRSTACK; true", cwd="ROOT"),
        do("cd sub; true", cwd="ROOT/sub"),
    ],
    "a shell that was to exit says so, and one that set -e has ended names that": [
        do("exit", ends="[The shell exited as asked (code 0). The next command starts a new shell.]", is_error=False),
        do("cd /nowhere || exit 4", ends="[The shell exited as asked (code 4). The next command starts a new shell.]", ended_by="exit"),
        do("set -e"),
        do("echo on"),
        do("false", ends="[The shell exited with code 1, because `set -e` is on and a command failed. The next command starts a new shell.]"),
        do("set -euo pipefail; (exit 3); echo never", ended_by="set -e", exit_code=3),
        do("echo 'set -e' > on.sh; source on.sh"),
        do("source on.sh; false", ended_by="set -e", exit_code=1),
        do("set -e; true"),
        do("set +e; false", exit_code=1, shell_ended=False),
        do("kill -9 $$", ends="[The shell exited with code 137. The next command starts a new shell.]", ended_by=None),
        do("exec true", ends="[The shell exited with code 0. The next command starts a new shell.]", ended_by=None),
    ],
    "text is typed without Enter": [
        do("read -n 1 -p 'sure? ' x; read -p 'name? ' y; echo \"<$x$y>\"", "sure? ", running=True),
        key("y", "name? ", enter=False, timeout=0.5, running=True),
        key("A", "", enter=False, timeout=0.1, running=True),
        key("da", "<yAda>\n", enter=True, exit_code=0),
        do("read -p 'go? '; echo gone", running=True),
        key("", "gone\n", enter=True, exit_code=0),
        do("read -p 'go? '; echo gone", running=True),
        do("y", "gone\n", enter=True, exit_code=0),
    ],
    "a word that is the name of a key is typed where Enter is asked for": [
        do("while read -r x && [ $x != END ]; do echo $x; done; echo over", running=True),
        key("UP", "UP\n", enter=True, timeout=0.5, running=True),
        key("HOME", enter=True, timeout=0.5, running=True, pressed=None),
        key("END", enter=True, has="over\n", exit_code=0),
        do("read -r x; echo ${#x}", running=True),
        key("END", timeout=0.3, running=True, pressed="END", has="[Pressed the key END. To type this word, add enter=true.]\n["),
        key("C-c", pressed=None, exit_code=130),
    ],
    "a key without is_input is typed all the same where something runs": [
        do("sleep 1000", running=True),
        do("C-c", exit_code=130),
        do("C-c", exit_code=127),
    ],
    "a stopped job gives the shell back": [
        do("cat", running=True),
        key("C-z", exit_code=148, has="Stopped"),
        do("jobs", has="cat"),
    ],
    "there is nothing to wait for or to type into when nothing runs": [
        *NOTHING_RUNS,
        do("true", exit_code=0),
        *NOTHING_RUNS,
    ],
    "input that comes too late is not run as a command": [
        # Nothing reads the lines, so they wait in the terminal when the command ends.
        do("sleep 1", running=True),
        *(key(line, timeout=0, running=True) for line in ("touch one", "touch two", "C-d", "UP")),
        do("", exit_code=0),
        do("echo alive; ls", "alive\n", new_shell=False),
    ],
    "what the background writes later is told with the next command": [
        do("mkfifo go said; (read x < go; echo from behind; echo > said) & echo"),
        do("echo > go; read x < said", session="other"),
        do("echo in front; wait", has="from behind\n"),
    ],
    "reset ends what runs and starts anew": [
        do("mkdir sub; cd sub; A=1; trap '' TERM HUP INT; echo going on; sleep 1000", running=True),
        do("", reset=True, new_shell=True, exit_code=None, running=False, is_error=False),
        do("echo [$A]; pwd", "[]\nROOT\n", new_shell=False),
        do("A=1; cat", running=True),
        do("echo [$A]", reset=True, text="[]\n", new_shell=True, exit_code=0, has="new shell"),
    ],
    "sessions know nothing of each other": [
        do("mkdir sub; cd sub; A=1"),
        do("echo [$A]; pwd; cd /; A=2", "[]\nROOT\n", session="other", new_shell=False, has="; session other]"),
        do("echo $A; pwd", "1\nROOT/sub\n"),
        do("echo $A; pwd", "2\n/\n", session="other"),
    ],
    "a server runs in one session while another is worked in": [
        do("mkfifo requests; echo made", "made\n"),
        do("exec 3<> requests; while read -u 3 x; do echo answering $x; done", session="server", running=True),
        do("echo one > requests; echo sent", "sent\n"),
        do("echo no", session="server", problem="still_running"),
        key("C-c", session="server", exit_code=130),
    ],
    "a shell inside the shell is a program that runs": [
        do("A=outer; PS1='inner> ' sh -i", running=True),
        key("echo deep", has="deep", timeout=1, running=True),
        key("exit 3", exit_code=3),
        do("echo $A", "outer\n"),
    ],
    "a program in the place of the shell can be talked to and ended": [
        do("exec python3 -i -c 'print(6 * 7)'", running=True),
        key("print(40 + 3)", timeout=1, has="43", running=True),
        key("import os; os._exit(3)", shell_ended=True, exit_code=3),
        do("echo new", "new\n", new_shell=True),
    ],
    "a program that asks for a password shows its question and can be answered": [
        # As sudo and ssh do: from the terminal itself, whatever the standard input is, and without showing what is typed.
        do("echo | bash -c \"read -rsp 'password: ' x < /dev/tty; echo; echo got \\${#x}\"", "password: ", running=True),
        key("hunter2", has="got 7\n", lacks="hunter2"),
        do("stty -a | grep -c -w -e -echo", "1\n"),
    ],
    "another shell in its place is a program that runs until it ends": [
        step
        for shell in ("sh -i", "bash --norc -i")
        for step in (
            do(f"exec {shell}", running=True),
            key("echo de\'\'ep", timeout=1, running=True, has="deep"),
            key("exit 3", shell_ended=True, exit_code=3),
            do("echo new", new_shell=True),
        )
    ],
    "what the shell traces is the command alone": [
        do("set -x"),
        do("echo a", has="+ echo a\na\n"),
        do("echo $-", has="x"),
        do("set +x"),
        do("echo a", "a\n"),
    ],
    "traps do not hide the end": [
        do("trap 'true' DEBUG; trap 'echo failed' ERR; trap 'echo returned' RETURN"),
        do("false; (exit 3)", exit_code=3, has="failed\n"),
        do("trap - DEBUG ERR RETURN; echo over", exit_code=0),
    ],
    "the number of one command means nothing in the next": [
        # Its own number can be had from the shell itself, by a command that looks for it: it is worth nothing afterwards.
        do("old=$__agentcore_nonce; [ ${#old} = 19 ] || echo no number", ""),
        do(r"printf '\033]7717;%s;0\037/fake\037\037\007\n' $old; echo on; (exit 5)", "\non\n", exit_code=5),
    ],
    "what looks like the beginning of a report is output": [
        do(r"printf '\033]7717;%s;' $__agentcore_nonce; (exit 6)", exit_code=6),
        do("echo fine", has="fine\n"),
        do(r"for i in 1 2; do printf '\033]7717;%s;' $__agentcore_nonce; head -c 200000 /dev/zero | tr '\0' x; done; echo; (exit 7)", exit_code=7, has="xxx"),
    ],
    "no child is told the number": [
        do("set -a; EXPORTED=1"),
        do("env | grep -c agentcore_; env | grep EXPORTED", "0\nEXPORTED=1\n"),
    ],
    "bytes that are not text are replaced and others dropped": [
        do(r"printf 'a\0b\xff\xfec\xc3'; printf '\xa9d\a\n'", "ab\ufffd\ufffdcéd\n"),
        do(r"for i in {1..400}; do printf \\$(printf %o $((i % 256))); done | cat - /bin/ls; printf '\nend\n'", has="\nend\n"),
        do("echo fine", "fine\n"),
    ],
    "an error that gives up the line is told with its code": [
        do("echo ${nothing:?is missing}; echo never", exit_code=1, lacks="never\n", shell_ended=False),
        do("set -u; echo $nothing; echo never", exit_code=1, lacks="never\n", shell_ended=False),
        do("echo $((1/0)); echo never", exit_code=1, lacks="never\n", shell_ended=False),
        do("echo fine", "fine\n"),
    ],
    "a folder that is gone or oddly named is told": [
        do("mkdir $'a;b\\n\\x07\\x1b]0;x c' && cd *x\\ c", cwd="ROOT/a;b???]0;x c"),
        do('rmdir "$PWD"; true', exit_code=0),
        do("echo fine", "fine\n"),
    ],
    "git fails where it would ask who one is": [
        do("printf 'protocol=http\\nhost=127.0.0.1\\n\\n' | git -c credential.helper= credential fill", exit_code=128, has="prompts disabled"),
    ],
    "nothing stops to show a page at a time": [
        do("git init -q . && git config user.email a@b.c && git config user.name n && seq 300 > f && git add f && git commit -qm one"),
        do("git show --format=%s", starts="one\n", has="\n+300\n"),
    ],
    "a secret is there for the command that names it and gone afterwards": [
        do('echo "$TOKEN"; : "$TOKEN"; env | grep -c another; sh -c \'echo child: ${#TOKEN}\'', "correct horse\n'$x' é\n0\nchild: 21\n"),
        do("env | grep -c horse; set | grep -c horse; declare -p | grep -c horse", "0\n0\n0\n"),
        do('echo "[$OTHER]"', "[another one]\n"),
        do("python3 -c 'import os; print(os.environ[\"OTHER\"])'", "another one\n"),
        do("echo $MY_TOKEN $TOKENS; env | grep -c horse", "\n0\n"),
    ],
    "a secret is gone after an interrupted command too": [
        do("echo ${#TOKEN}; sleep 1000", running=True),
        key("C-c", exit_code=130),
        do("env | grep -c horse; set | grep -c horse", "0\n0\n"),
    ],
    "a secret is in no history, and typed where nobody can list it": [
        do("set -o history; HISTFILE=$PWD/history; true"),
        do("[ -n \"$TOKEN\" ] && cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[c]orrect.horse'", "0\n"),
        do("history | grep -c horse; history -a; cat history 2>/dev/null | grep -c horse", "0\n0\n"),
    ],
    "a variable of a secret's name is as it was after the command": [
        do("export ''OTH''ER=mine; declare ''OTH''ER=mine"),
        *(
            each
            for command in ("", "; echo ${none:?}", "; f() { echo $OTHER; return 3; }; f", "; set -o posix; echo $OTHER")
            for each in (do(f"echo $OTHER{command}", starts="another one\n"), do("env | grep OTHE", "OTHER=mine\n"))
        ),
    ],
    "a background process that writes for ever holds nothing up": [
        do("yes flood & true", exit_code=0),
        *(do(f"echo number {number}", exit_code=0, running=False) for number in range(3)),
        do("exit 3", exit_code=3, shell_ended=True),
        do("echo fine", has="fine\n"),
    ],
}  # fmt: skip


SECRETS = {"TOKEN": "correct horse\n'$x' é", "OTHER": "another one"}


def check(answer: TerminalObservation, expected: dict[str, Any], root: str) -> None:
    (content,) = answer.to_content()
    content = str(content)
    for name, value in expected.items():
        wanted = value.replace("ROOT", root) if isinstance(value, str) else value
        match name:
            case "starts":
                assert content.startswith(wanted)
            case "ends":
                assert content.endswith(wanted)
            case "has":
                assert wanted in content
            case "lacks":
                assert wanted not in content
            case "content":
                assert content == wanted
            case _:
                assert getattr(answer, name) == wanted, name
    assert answer.to_data()[STILL_RUNNING] is answer.running


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            steps,
            id=name,
            marks=[
                *([needs("git")] if any("git " in str(step) for step in steps) else []),
                *([pytest.mark.slow] if at % 3 else []),
            ],
        )
        for at, (name, steps) in enumerate(SCENARIOS.items())
    ],
)
async def test_what_is_called_is_answered(tmp_path: Path, steps: list[Step]) -> None:
    async with open_terminal(tmp_path, quiet=0.3, secrets=SECRETS) as terminal:
        for call, expected in steps:
            check(await terminal(**call), expected, str(tmp_path))


# Each is run in the same shell, and the command after it works as if nothing had been before it. Of a text that is None, bash's
# own words, there is some.
TABLE: tuple[tuple[str, str | None, int], ...] = (
    ("for i in 1 2; do\n  echo $i\ndone", "1\n2\n", 0),
    ("cat <<X\na $((1+1))\n  b\nX\necho c", "a 2\n  b\nc\n", 0),
    ("cat <<'X'\n$a\\n'\nX", "$a\\n'\n", 0),
    ("echo one \\\n  two", "one two\n", 0),
    ("echo 'a\nb'; echo \"c\n\nd\"", "a\nb\nc\n\nd\n", 0),
    ("f() {\n  echo in f\n}\nf", "in f\n", 0),
    ('echo "a!b" !! !x', "a!b !! !x\n", 0),
    ("echo 'grün 你好 🙂'", "grün 你好 🙂\n", 0),
    ("printf '%s' $'\\t|\\x01|' | od -An -c | tr -s ' '", " \\t | 001 |\n", 0),
    ("printf '%s' '\x01\x03\x04\x0f\x15\x16\x1a\x7f' | od -An -tx1", " 01 03 04 0f 15 16 1a 7f\n", 0),
    ("# a comment", "", 0),
    ("echo a; # a comment", "a\n", 0),
    ("echo `echo \\`echo nested\\`` '$x' \"\\$y\" \\\\", "nested $x $y \\\n", 0),
    ("echo {a,b}{1..3}; [[ abc == a* ]] && echo matches", "a1 a2 a3 b1 b2 b3\nmatches\n", 0),
    ("printf a", "a", 0),
    ("printf '%s' \"$-\" | tr -d 'a-gj-lo-zA-Z'", "him", 0),
    ("true", "", 0),
    ("echo b >&2; echo c", "b\nc\n", 0),
    ("echo before; (exit 7)", "before\n", 7),
    ("-n", None, 127),
    ("if true", None, 2),
    ("echo 'never closed", None, 2),
    ('echo "$(', None, 1),
    ("echo )", None, 2),
    ("{", None, 2),
    ("cat <<X\nnever closed", None, 0),
)


async def test_a_command_means_what_it_means_to_bash_and_the_next_one_works(terminal: Terminal) -> None:
    for command, text, code in TABLE:
        answer = await terminal(command)
        assert (answer.exit_code, answer.is_error, answer.running) == (code, code != 0, False), command
        assert answer.text if text is None else answer.text == text, command
        assert (await terminal("echo $?; echo fine")).text == f"{code}\nfine\n", command


@pytest.mark.parametrize("name", some_quick(["C-c", "C-C", "c-c", "^C", "Ctrl-C", "ctrl+c"], 6))
async def test_a_command_is_interrupted_by_its_key_and_the_shell_lives_on(hasty: Terminal, name: str) -> None:
    await hasty("A=kept; sleep 1000; echo not this")
    answer = await hasty(name, is_input=True, timeout=60)
    assert (answer.exit_code, answer.text.strip()) == (130, "")
    assert (await hasty("echo $A")).text == "kept\n"


KEYS = {"UP": "1b 5b 41", "TAB": "09", "ESC": "1b", "BS": "7f", "ENTER": "0d", "C-a": "01", "PGDN": "1b 5b 36 7e"}


@pytest.mark.slow
async def test_keys_are_what_a_terminal_sends(hasty: Terminal) -> None:
    for name, sent in KEYS.items():
        assert (await hasty(f"stty raw; head -c {len(sent.split())} | od -An -tx1")).running
        assert (await hasty(name, is_input=True, timeout=60)).text.strip() == sent
