"""Calls of the terminal as models write them."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.tools import AnyTool, Resource, ToolSpec, conflicts, read_call
from agentcore_tools import TerminalAction, terminal_tool
from agentcore_tools.terminal.input import count


@pytest.mark.parametrize(
    ("name", "arguments", "action"),
    [
        ("terminal", {"command": "ls"}, {"command": "ls"}),
        ("bash", {"command": "ls"}, {"command": "ls"}),
        ("execute_bash", {"command": "ls", "is_input": "false", "timeout": "30"}, {"command": "ls", "timeout": 30.0}),
        ("shell", {"cmd": "ls"}, {"command": "ls"}),
        ("execute", {"script": "ls\npwd"}, {"command": "ls\npwd"}),
        ("command", {"code": "ls"}, {"command": "ls"}),
        ("terminal", {"command": ["git", "commit", "-m", "a b"]}, {"command": "git commit -m 'a b'"}),
        ("terminal", {"command": ["bash", "-lc", "ls | wc"]}, {"command": "ls | wc"}),
        ("terminal", {"command": ["ls | wc"]}, {"command": "ls | wc"}),
        ("terminal", {"reset": True}, {"command": "", "reset": True}),
        (
            "terminal",
            {"command": "y", "is_input": True, "press_enter": "false"},
            {"command": "y", "is_input": True, "enter": False},
        ),
        ("terminal", {"restart": "true"}, {"command": "", "reset": True}),
        ("reset", {}, {"command": "", "reset": True}),
        ("reset", {"command": "ls"}, {"command": "ls", "reset": True}),
        ("Bash", {"command": "ls", "description": "list", "run_in_background": False}, {"command": "ls"}),
        ("Bash", {"command": "ls", "timeout": 120_000}, {"command": "ls", "timeout": 120}),
        ("execute_command", {"command": "ls", "requires_approval": True}, {"command": "ls"}),
        (
            "exec_command",
            {"cmd": "make\nls", "workdir": "a b", "yield_time_ms": 1500, "login": True, "shell": "bash"},
            {"command": "cd -- 'a b' && {\nmake\nls\n}", "timeout": 1.5},
        ),
        (
            "shell",
            {"command": ["bash", "-lc", "ls"], "workdir": ".", "timeout_ms": 1000},
            {"command": "ls", "timeout": 1},
        ),
        (
            "local_shell",
            {
                "action": {
                    "type": "exec",
                    "command": ["ls", "a b"],
                    "timeout_ms": 2000,
                    "env": {},
                    "working_directory": "x",
                }
            },
            {"command": "cd -- x && {\nls 'a b'\n}", "timeout": 2},
        ),
        ("local_shell", {"command": ["ls"]}, {"command": "ls"}),
        ("write_stdin", {"session_id": 1, "chars": "y\n"}, {"command": "y\n", "is_input": True, "enter": False}),
        ("write_stdin", {"session_id": 1, "chars": "", "yield_time_ms": 500}, {"command": "", "timeout": 0.5}),
        ("git", {"command": "status"}, {"command": "git status"}),
        ("git", {"command": "git log -1"}, {"command": "git log -1"}),
        ("git", {"args": ["log", "a b"]}, {"command": "git log 'a b'"}),
        (
            "grep",
            {"pattern": "-x y", "path": "src", "include": "*.py"},
            {"command": "grep -rnIE '--include=*.py' -e '-x y' -- src"},
        ),
        ("git", {"args": "log"}, {"command": "git log"}),
        ("grep", {"pattern": "x"}, {"command": "grep -rnIE -e x -- ."}),
        ("terminal", {"command": "x", "timeout": None, "is_input": None}, {"command": "x"}),
    ],
)
def test_a_call_is_read_as_it_was_meant(name: str, arguments: dict[str, Any], action: dict[str, Any]) -> None:
    read = read_call(name, arguments, [terminal_tool()])
    assert read.problem is None
    assert read.name == "terminal"
    assert read.action == TerminalAction(**action)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": {"a": 1}},
        {"command": "ls", "timeout": -1},
        {"command": "ls", "where": "here"},
        {"command": 5, "reset": 7},
        {"command": "ls", "shell": "fish"},
        {"command": "ls", "run_in_background": "maybe"},
    ],
)
def test_a_call_that_can_not_be_meant_is_answered(arguments: dict[str, Any]) -> None:
    read = read_call("terminal", arguments, [terminal_tool()])
    assert read.code == "bad_arguments"


@pytest.mark.parametrize("name", ["run_in_background", "is_background", "isBackground"])
def test_a_command_for_the_background_is_answered_with_how_to_start_one(name: str) -> None:
    read = read_call("Bash", {"command": "server", name: True}, [terminal_tool()])
    assert (read.action, read.code) == (None, "bad_arguments")
    assert read.problem is not None
    assert "Start it with ` &` behind it" in read.problem


@pytest.mark.parametrize(("name", "arguments"), [("git", {"depth": 1}), ("grep", {"path": "src"})])
def test_a_tool_that_is_not_there_is_not_taken_for_a_terminal_where_it_can_not_be(
    name: str, arguments: dict[str, Any]
) -> None:
    assert read_call(name, arguments, [terminal_tool()]).code == "unknown_tool"


def test_a_terminal_travels_by_name_with_what_is_not_as_usual() -> None:
    assert terminal_tool().spec == ToolSpec(name="terminal")
    spec = terminal_tool(quiet_seconds=5, input_seconds=1).spec
    assert spec == ToolSpec(name="terminal", params={"quiet_seconds": 5, "input_seconds": 1})
    spec = terminal_tool(type_seconds=1, keep_bytes=0, sessions=2, overlap=True).spec
    assert spec is not None
    assert spec.params == {"type_seconds": 1, "keep_bytes": 0, "sessions": 2, "overlap": True}


def test_sessions_are_resources_of_their_own_and_a_command_may_write_any_file() -> None:
    def touched(tool: AnyTool, session: str) -> tuple[Resource, ...]:
        return tool.resources_of(TerminalAction(command="true", session=session), "/project")

    usual, overlapping = terminal_tool(), terminal_tool(overlap=True)
    view = [Resource.file("a.txt", "read", root="/project")]
    assert conflicts(touched(usual, "a"), touched(usual, "b"))
    assert conflicts(touched(usual, "a"), view)
    assert conflicts(touched(overlapping, "a"), touched(overlapping, "a"))
    assert not conflicts(touched(overlapping, "a"), touched(overlapping, "b"))
    assert not conflicts(touched(overlapping, "a"), view)


def test_a_terminal_without_patience_is_refused() -> None:
    with pytest.raises(ValueError, match="quiet_seconds=0"):
        terminal_tool(quiet_seconds=0)
    with pytest.raises(ValueError, match="sessions=0"):
        terminal_tool(sessions=0)


def test_the_model_is_told_the_time_that_is_set() -> None:
    assert "silent for 30 seconds" in terminal_tool().description
    assert "silent for 7 seconds" in terminal_tool(quiet_seconds=7).description
    parameters: dict[str, Any] = terminal_tool().schema.parameters
    assert set(parameters["properties"]) == {"command", "is_input", "enter", "timeout", "session", "reset"}
    assert parameters["required"] == ["command"]


COUNTED = [
    # One command, in however many lines.
    ("", 1),
    ("make", 1),
    ("make &&\n  echo made ||\n  echo failed", 1),
    ("ls |\n  wc -l", 1),
    ("for i in 1 2; do\n  echo $i; done", 1),
    ("while read -r x; do\n  echo $x\ndone < list | sort", 1),
    ("if true; then\n  a\nelse\n  b\nfi", 1),
    ("case $x in\n  a) b;;\nesac", 1),
    ("f() {\n  a\n  b\n}", 1),
    ("{ a; b; }", 1),
    ("(a; b)", 1),
    ("cat <<'END' > file\none; two\nEND\n", 1),
    ("cat <<-END | sort\n\tone & two\n\tEND", 1),
    ("python - <<PY && echo done\nimport os\nprint(1); print(2)\nPY", 1),
    ("echo one \\\n  two", 1),
    ("echo 'a;\nb' \"c\n$(d; e)\"", 1),
    ("a=(1\n  2)", 1),
    ("# first; this\nmake  # then; that\n", 1),
    ("sleep 9 &", 1),
    ("make;", 1),
    ("\ud800;", 1),
    ("cd x; make", 2),
    ("cd x\nmake\n", 2),
    ("server & curl x", 2),
    ("server &\ncurl x", 2),
    ("a; b; c;", 3),
    ("cat <<END\nx\nEND\nls", 2),
    ("f() { a; }\nf", 2),
    ("a=1\n\n# then\nexport b=2\nc && d", 3),
    ("for i in 1 2; do echo; done; echo é\nls", 3),
    # What the parser can not know counts as one.
    ("if a; then\nb", 1),
    ("cat <<A\n" * 3_000, 1),
    ("a;" * 100_000, 1),
    ("))((;\n&&&", 1),
]


async def test_commands_are_counted() -> None:
    for command, number in COUNTED:
        assert await count(command) == number, command
