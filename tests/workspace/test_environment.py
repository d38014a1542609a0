from __future__ import annotations

from pathlib import Path

import pytest

from agentcore.workspace import LocalWorkspace
from agentcore.workspace.launch import environment, is_own_variable


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "AZURE_API_KEY_2",
        "SESSION_API_KEYS_0",
        "API_KEY",
        "some_apikey",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AGENTCORE_SECRET",
    ],
)
def test_what_belongs_to_this_program_is_not_inherited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "hidden")
    assert is_own_variable(name)
    assert "hidden" not in environment(True, mark="m", terminal=False).values()


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_API_KEYBOARD", "RAPI_KEY"]
)
def test_what_belongs_to_the_users_commands_is_inherited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "shown")
    assert environment(True, mark="m", terminal=False)[name] == "shown"


def test_variables_can_be_named_or_kept_away_altogether(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "asked for")
    monkeypatch.setenv("OTHER", "not asked for")
    named = environment(("OPENAI_API_KEY", "NOT_THERE"), mark="m", terminal=False)
    assert named == {"OPENAI_API_KEY": "asked for", "AGENTCORE_PROCESSES": "m"}
    assert environment(False, {"A": "1", "B": "1"}, None, {"B": "2"}, mark="m", terminal=False) == {
        "A": "1",
        "B": "2",
        "AGENTCORE_PROCESSES": "m",
    }


def test_marks_of_outer_processes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCORE_PROCESSES", "outer:middle")
    for inherit in (True, False, ("PATH",)):
        assert environment(inherit, mark="inner", terminal=False)["AGENTCORE_PROCESSES"] == "outer:middle:inner"


def test_a_terminal_does_not_inherit_the_size_and_kind_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setenv("TERM", "dumb")
    variables = environment(True, mark="m", terminal=True)
    assert variables["TERM"] == "xterm-256color"
    assert not {"COLUMNS", "LINES"} & variables.keys()
    assert environment(True, {"TERM": "vt100"}, mark="m", terminal=True)["TERM"] == "vt100"
    monkeypatch.setenv("TERM", "screen")
    assert environment(True, mark="m", terminal=True)["TERM"] == "screen"


async def test_commands_see_the_workspaces_variables_and_not_this_programs_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hidden")
    monkeypatch.setenv("SHARED", "inherited")
    async with LocalWorkspace(tmp_path, env={"SHARED": "of the workspace", "MINE": "1"}) as workspace:
        show = 'echo "${OPENAI_API_KEY-none} $SHARED $MINE"'
        assert (await workspace.run(show)).stdout == "none of the workspace 1\n"
        assert (await workspace.run(show, env={"MINE": "2"})).stdout == "none of the workspace 2\n"
    async with LocalWorkspace(tmp_path, inherit_env=False) as workspace:
        assert (await workspace.run('echo "${HOME-none}"')).stdout == "none\n"
