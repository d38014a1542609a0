"""Random commands in a row give what a plain bash gives: output, exit code, working directory."""

from __future__ import annotations

import subprocess
import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from opened_tool import open_terminal

# Words that mean something to a shell, and to those who quote for it.
word = st.sampled_from(
    ["a", "b c", "$X", "$(echo in)", "*", "~", "é你", "-n", "a'b", 'a"b', "\\", "!!", "#", "{1..3}", "$'t\\tn\\n'", "%s", ""]
)  # fmt: skip
double = word.map(lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
single = word.map(lambda text: "'" + text.replace("'", "'\\''") + "'")
quoted = st.one_of(single, double)
arguments = st.lists(quoted, max_size=3).map(" ".join)
name = st.sampled_from(["X", "Y", "IFS_", "PWD_"])

simple = st.one_of(
    arguments.map(lambda text: f"echo {text}"),
    arguments.map(lambda text: f"printf '<%s>\\n' {text}"),
    st.builds("{}={}".format, name, quoted),
    st.builds("export {}={}".format, name, quoted),
    name.map(lambda text: f'echo "${text}"'),
    name.map(lambda text: f"unset {text}"),
    st.sampled_from(["d1", "d1/d2", "..", "/", "-", "$HOME", "nowhere"]).map(lambda text: f"cd {text} >/dev/null 2>&1"),
    st.just("pwd"),
    # Nowhere else: the other shell would find it there, and so would everybody.
    st.just('case $PWD in "$TOP"*) mkdir -p d1/d2 ;; esac'),
    st.integers(0, 255).map(lambda code: f"(exit {code})"),
    st.sampled_from(
        ["true", "false", "echo $?", "echo $#", "nosuchcommand 2>/dev/null", "shopt -s nullglob", "set -u", "set +u"]
    ),
    arguments.map(lambda text: f"f() {{ echo f {text}; return 3; }}"),
    st.just("f 2>/dev/null"),
    arguments.map(lambda text: f"set -- {text}"),
    quoted.map(lambda text: f"cat <<< {text}"),
    st.sampled_from(["printf 'no end'", "printf 'a\\nb'", "seq 100", "echo a | tr a b | cat", "echo out | grep -c o"]),
)

# They need the line they stand on for themselves.
here = st.one_of(
    word.map(lambda text: f"cat <<'EOT'\n{text}\nEOT"),
    word.filter(lambda text: text != "\\").map(lambda text: f"cat <<EOT\n{text}\nEOT"),
)


def combined(command: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{} && {}".format, simple, simple),
        st.builds("{} || {}".format, simple, command),
        st.builds("{}\n{}".format, command, command),
        st.builds("if {}; then\n{}\nfi".format, simple, command),
        st.builds("for i in 1 2; do\n{}\ndone".format, command),
        st.builds("(\n{}\n)".format, command),
        st.builds("{{\n{}\n}} | cat".format, command),
    )


commands = st.recursive(st.one_of(simple, here), combined, max_leaves=4)


Told = list[tuple[str, int, str]]


def plain_bash(folder: Path, row: list[str]) -> Told:
    """Run the commands in one bash that knows nothing of ours; after each, it writes how things stand to a file."""
    with tempfile.TemporaryDirectory() as name:
        beside = Path(name)
        script: list[str] = []
        for number, command in enumerate(row):
            (beside / f"{number}.sh").write_text(command)
            # Read before, because a command that is substituted changes `$?`.
            script.append(f'C=$(cat "$T/{number}.sh"); (exit $R)\neval "$C" >"$T/{number}.out" 2>&1')
            script.append(f'R=$?; printf "%s %s" $R "$(builtin pwd)" >"$T/{number}.end"')
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", "\n".join(script)],
            cwd=folder,
            env={"T": name, "TOP": str(folder), "PATH": "/usr/bin:/bin", "HOME": "/"},
            check=False,
            stdin=subprocess.DEVNULL,
        )
        told: Told = []
        for number in range(len(row)):
            code, _, cwd = (beside / f"{number}.end").read_text().partition(" ")
            told.append(((beside / f"{number}.out").read_text(), int(code), cwd))
        return told


async def our_terminal(folder: Path, row: list[str]) -> Told:
    told: Told = []
    async with open_terminal(folder) as terminal:
        await terminal("PATH=/usr/bin:/bin HOME=/ TOP=$PWD; set --; unset OLDPWD")
        for command in row:
            observation = await terminal(command)
            assert observation.exit_code is not None
            assert observation.cwd is not None
            told.append((observation.text, observation.exit_code, observation.cwd))
    return told


@pytest.mark.slow
@given(row=st.lists(commands, min_size=1, max_size=8))
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_random_commands_give_what_bash_gives(row: list[str]) -> None:
    check(row)


@pytest.mark.slow
@given(row=st.lists(commands, min_size=200, max_size=200))
@settings(
    max_examples=3, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_two_hundred_random_commands_in_a_row_give_what_bash_gives(row: list[str]) -> None:
    check(row)


def check(row: list[str]) -> None:
    # A bash that reads a script ends at what is unset; one that is talked to gives up the line.
    row = [command.replace("set -u", "set +u") for command in row]
    told: list[Told] = []
    for run in (plain_bash, partial(anyio.run, our_terminal)):
        with tempfile.TemporaryDirectory() as above:
            folder = Path(above).resolve() / "folder"
            folder.mkdir()
            told.append(
                [
                    (out.replace(above, "ABOVE"), code, cwd.replace(above, "ABOVE"))
                    for out, code, cwd in run(folder, row)
                ]
            )
    for number, command in enumerate(row):
        assert told[1][number] == told[0][number], (number, command)
