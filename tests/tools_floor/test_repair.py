"""Calls as models write them, read as they were meant."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentcore.errors import ToolError
from agentcore.tools import Action, AnyTool, Arguments, TextObservation, Tool, ToolContext, read_call


class Run(Action):
    command: str
    timeout: float | None = None


class Edit(Action):
    command: Literal["view", "create", "str_replace"]
    path: str
    old_str: str | None = None
    new_str: str | None = None
    view_range: list[int] | None = None


async def done(action: Action, ctx: ToolContext) -> TextObservation:
    return TextObservation(text=repr(action))


def git(arguments: Arguments) -> Arguments:
    command = arguments.get("command")
    return {"command": f"git {command}" if command else "git"}


def grep(arguments: Arguments) -> Arguments | None:
    pattern = arguments.get("pattern")
    return {"command": f"grep -rn {pattern}"} if isinstance(pattern, str) else None


def infer_command(arguments: Arguments) -> Arguments:
    if "command" in arguments:
        return arguments
    return {"command": "str_replace" if "old_str" in arguments else "view", **arguments}


TERMINAL: AnyTool = Tool(
    name="terminal",
    description="Run a command.",
    action=Run,
    execute=done,
    aliases=("bash", "execute_bash", ("git", git), ("grep", grep)),
)
EDITOR: AnyTool = Tool(
    name="file_editor",
    description="Edit a file.",
    action=Edit,
    execute=done,
    aliases=("str_replace", "str_replace_editor"),
    normalize=infer_command,
)
TOOLS = (TERMINAL, EDITOR)


@pytest.mark.parametrize(
    "name",
    [
        *("terminal", "bash", "execute_bash", "Terminal", "TERMINAL", "execute-bash", "terminal </parameter"),
        *("terminal</function>", " terminal\n", "functions.terminal", "default_api:terminal", "<function=terminal>"),
        *('terminal"}', "bash</parameter"),
    ],
)
def test_a_name_is_understood_as_it_was_meant(name: str) -> None:
    read = read_call(name, '{"command": "ls"}', TOOLS)
    assert (read.name, read.tool, read.action, read.problem) == ("terminal", TERMINAL, Run(command="ls"), None)


VIEWED = Edit(command="view", path="/a", view_range=[1, 5])


@pytest.mark.parametrize(
    ("name", "arguments", "action"),
    [
        ("file_editor", {"command": "view", "path": "/a", "view_range": "[1, 5]"}, VIEWED),
        ("file_editor", {"command": "view", "path": "/a", "view_range": ["1", "5"]}, VIEWED),
        (
            "file_editor",
            {"Command": "VIEW", "filePath": None, "path": ["/", "a"], "viewRange": [1, 5], "old_str": None},
            VIEWED,
        ),
        ("file_editor", '{"command": "view", "path": "/a", "view_range": [1, 5]}</parameter>', VIEWED),
        ("file_editor", '"{\\"command\\": \\"view\\", \\"path\\": \\"/a\\", \\"view_range\\": \\"[1, 5]\\"}"', VIEWED),
        ("file_editor", '{"path": "/a", "view_range": \\n[1, 5]\\n}', VIEWED),
        # An alias of a malformed name leads to the tool, and the tool infers what is missing.
        (
            "str_replace </parameter",
            {"path": "/a", "old_str": "x"},
            Edit(command="str_replace", path="/a", old_str="x"),
        ),
        # An alias may come with arguments of its own.
        ("git", {"command": "status"}, Run(command="git status")),
        ("grep", {"pattern": "x", "path": "."}, Run(command="grep -rn x")),
        ("terminal", {"command": "ls", "timeout": "2.5"}, Run(command="ls", timeout=2.5)),
        # Half a character does not reach the log.
        ("terminal", {"command": "echo \ud83d\ude00 \ud83d"}, Run(command="echo \U0001f600 \ufffd")),
    ],
)
def test_arguments_are_understood_as_they_were_meant(
    name: str, arguments: dict[str, JsonValue] | str, action: Action
) -> None:
    read = read_call(name, arguments, TOOLS)
    assert (read.problem, read.malformed, read.action) == (None, None, action)
    # Those that are told are those that are used.
    used = {key: value for key, value in read.arguments.items() if value is not None}
    assert used == {key: value for key, value in action.model_dump().items() if value is not None}


def test_a_tools_own_name_goes_before_the_alias_of_another() -> None:
    own: AnyTool = Tool(name="bash", description="Another.", action=Run, execute=done)
    assert read_call("bash", {"command": "ls"}, [TERMINAL, own]).tool is own


def test_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    read = read_call("paint the </wall", {"colour": "red"}, TOOLS)
    assert (read.code, read.tool, read.action) == ("unknown_tool", None, None)
    assert read.problem is not None
    assert "'paint the </wall'" in read.problem
    assert "terminal, file_editor" in read.problem
    assert read.arguments == {"colour": "red"}
    assert read.name == "paint_the_wall"  # a provider takes it back in the history
    assert read_call("grep", {"path": "."}, TOOLS).code == "unknown_tool", "an alias that was not meant"
    read = read_call("paint", "{", TOOLS)
    assert (read.code, read.malformed, read.arguments) == ("unknown_tool", "{", {})
    read = read_call("", "{}", ())
    assert (read.name, read.code) == ("unknown", "unknown_tool")
    assert "none" in str(read.problem)


def test_arguments_that_do_not_fit_are_answered_with_what_was_given_and_what_is_wanted() -> None:
    read = read_call("terminal", {"cmd": "ls", "timeout": "soon"}, TOOLS)
    assert (read.code, read.tool, read.action) == ("bad_arguments", TERMINAL, None)
    for part in (
        "`command` is missing",
        "`cmd` is not an argument",
        "`timeout`",
        '"cmd": "ls"',
        "command (string, required)",
    ):
        assert part in str(read.problem)
    assert read.arguments == {"cmd": "ls", "timeout": "soon"}


def test_what_broke_off_is_not_done_but_kept_as_it_came() -> None:
    text = '{"command": "rm -rf build'
    read = read_call("bash", text, TOOLS)
    assert (read.name, read.code, read.action, read.malformed) == ("terminal", "bad_arguments", None, text)
    assert read.arguments == {}
    assert "cut off" in str(read.problem)
    assert "rm -rf build" in str(read.problem)


def test_a_tool_whose_repair_fails_says_what_is_wrong_with_the_arguments() -> None:
    def fails(arguments: Arguments) -> Arguments:
        raise KeyError("command")

    breaking: AnyTool = Tool(
        name="breaking", description="", action=Run, execute=done, normalize=fails, aliases=(("other", fails),)
    )
    for name in ("breaking", "other"):
        assert "`command` is missing" in str(read_call(name, {}, [breaking]).problem)
        assert read_call(name, {"command": "ls"}, [breaking]).action == Run(command="ls")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
names = st.text() | st.sampled_from(["terminal", "bash", "git", "grep", "str_replace", "file_editor"])
keys = st.text() | st.sampled_from(["command", "path", "old_str", "view_range", "timeout", "pattern"])


@given(names, st.text() | st.dictionaries(keys, json_values, max_size=4))
def test_reading_never_raises_and_gives_an_action_or_a_problem(name: str, arguments: dict[str, Any] | str) -> None:
    read = read_call(name, arguments, TOOLS)
    assert (read.action is None) == (read.problem is not None)
    assert (read.problem is None) == (read.code is None)
    assert json.loads(json.dumps(read.name)) == read.name


runs = st.builds(Run, command=st.text(), timeout=st.none() | st.floats(0, 1e6))
edits = st.builds(
    Edit,
    command=st.sampled_from(["view", "create", "str_replace"]),
    path=st.text(),
    old_str=st.none() | st.text(),
    new_str=st.none() | st.text(),
    view_range=st.none() | st.lists(st.integers()),
)


@given(runs | edits)
def test_a_call_that_is_right_is_read_as_it_is(action: Action) -> None:
    tool = TERMINAL if isinstance(action, Run) else EDITOR
    arguments = action.model_dump(mode="json")
    for given_arguments in (arguments, json.dumps(arguments)):
        read = read_call(tool.name, given_arguments, TOOLS)
        assert (read.tool, read.action, read.arguments) == (tool, action, arguments)


HABITS: AnyTool = Tool(
    name="terminal",
    description="Run a command.",
    action=Run,
    execute=done,
    ignored=("description", "timeout", ("run_in_background", False)),
)


@pytest.mark.parametrize(
    ("arguments", "ignored"),
    [
        ({"command": "ls"}, ()),
        ({"command": "ls", "description": "list"}, ("description",)),
        ({"command": "ls", "Description": None, "runInBackground": "False"}, ("Description", "runInBackground")),
        ({"command": "ls", "run_in_background": True}, None),
        ({"command": "ls", "why": "x"}, None),
    ],
)
def test_what_changes_nothing_is_dropped_and_named(
    arguments: dict[str, JsonValue], ignored: tuple[str, ...] | None
) -> None:
    read = read_call("terminal", arguments, [HABITS])
    assert (read.action is None) == (ignored is None)
    assert read.ignored == (ignored or ())
    if ignored is not None:
        assert read.arguments == {"command": "ls"}


def test_an_argument_that_the_tool_has_is_never_dropped() -> None:
    assert read_call("terminal", {"command": "ls", "timeout": 5}, [HABITS]).action == Run(command="ls", timeout=5)


@pytest.mark.parametrize("name", ["terminal", "start"])
def test_a_tool_says_what_to_do_instead_before_it_is_called(name: str) -> None:
    def refuse(arguments: Arguments) -> Arguments:
        raise ToolError(f"Call it later, and not with {arguments['command']}.")

    aliases = (("start", refuse),)
    tool: AnyTool = Tool(name="terminal", description="", action=Run, execute=done, normalize=refuse, aliases=aliases)
    read = read_call(name, {"command": "SECRET"}, [tool], mask=lambda text: text.replace("SECRET", "***"))
    assert (read.name, read.tool, read.action, read.code) == ("terminal", tool, None, "bad_arguments")
    assert read.problem == "Call it later, and not with ***."
