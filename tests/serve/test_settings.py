"""Settings of the environment, and agents of a file: what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore import LLM
from agentcore_serve.agents import ProfileError, load_profiles
from agentcore_serve.settings import ServeSettings, SettingsError


def test_settings_come_from_the_environment_and_arguments_go_before_them() -> None:
    environment = {
        "AGENTCORE_SERVE_PORT": "9000",
        "AGENTCORE_SERVE_SHARED_USER": "true",
        "AGENTCORE_SERVE_ALLOWED_HOSTS": "a.example, b.example",
        "AGENTCORE_SERVE_MODEL_ADDRESSES": '["10.0.0.0/8"]',
        "AGENTCORE_SERVE_IDLE_SECONDS": "60",
        "AGENTCORE_SERVE_REQUESTS_PER_MINUTE": "7",
        "AGENTCORE_SERVE_HOST": "",
        "OTHER": "x",
    }
    settings = ServeSettings.from_environment(environment, port=9001, host=None)
    assert settings.port == 9001
    assert settings.host == "127.0.0.1"
    assert settings.shared_user
    assert settings.allowed_hosts == ("a.example", "b.example")
    assert settings.model_addresses == ("10.0.0.0/8",)
    assert settings.limits.idle_seconds == 60
    assert settings.request_limits.requests_per_minute == 7
    assert settings.after_crash == "continue"
    assert "~" not in str(settings.store)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PORT", "many"),
        ("AFTER_CRASH", "explode"),
        ("IDLE_SECONDS", "-1"),
        ("STREAMS", "-1"),
        ("NO_SUCH", "x"),
        ("WORKSPACES", "x"),
        ("ALLOWED_HOSTS", "[broken"),
    ],
)
def test_a_variable_that_is_wrong_is_named_without_its_value(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"AGENTCORE_SERVE_{variable}:") as error:
        ServeSettings.from_environment({f"AGENTCORE_SERVE_{variable}": value})
    assert "broken" not in str(error.value)
    assert "many" not in str(error.value)


def test_an_argument_that_is_wrong_is_named() -> None:
    with pytest.raises(SettingsError, match="port=:"):
        ServeSettings.from_environment({}, port=70_000)


def write(folder: Path, text: str) -> Path:
    """Write a file of agents."""
    path = folder / "agents.toml"
    path.write_text(text)
    return path


def test_a_file_of_agents_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", "sk-team")
    path = write(
        tmp_path,
        """
        [agents.coder]
        model = "openai/gpt-5"
        description = "Writes software"
        api_key_env = "TEAM_KEY"
        settings = { reasoning_effort = "high" }
        instructions = "Be short."

        [agents.reader]
        model = "anthropic/claude-sonnet-4-5"
        tools = ["grep", "glob"]
        ask_user = false
        condenser = "none"
        """,
    )
    found = load_profiles(path)
    assert list(found) == ["coder", "reader"]
    coder, reader = found["coder"][1], found["reader"][1]
    assert isinstance(coder.llm, LLM)
    assert coder.llm.revealed_key == "sk-team"
    assert coder.llm.reasoning_effort == "high"
    assert coder.instructions == "Be short."
    assert {tool.name for tool in reader.own_tools} == {"grep", "glob", "finish", "think"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[agents.coder]\nmodel = x\n", "line 2"),
        ("[agents.coder]\nmodle = 'x'", r"\[agents.coder\] model"),
        ("[agents.coder]\nmodel = 'openai/gpt-5'\ntols = 'x'", r"\[agents.coder\] tols: there is no such key"),
        ("[agents.coder]\nmodel = 'openai/gpt-5'\ntools = 'all'", "no preset 'all'"),
        ("[agents.coder]\nmodel = 'openai/gpt-5'\ntools = ['hammer']", "no tool 'hammer'"),
        ("[agents.coder]\nmodel = 'openai/gpt-5'\napi_key_env = 'NOT_SET_HERE'", "NOT_SET_HERE"),
        ("[agents.coder]\nmodel = 'openai/gpt-5'\nsettings = {warmth = 1}", "warmth"),
        ("[agents.coder]\nmodel = 'openai/gpt-5'\nsettings = {temperature = 'hot'}", "temperature"),
        ("[agents.coder]\nmodel = 'openai/gpt-5'\nsettings = {temprature = 1}", r"did you mean `temperature`\?$"),
        ("[agents.coder]\nmodel = 'gpt-5'", r"\[agents.coder\]: 'gpt-5' names no provider"),
        (
            "[agents.coder]\nmodel = 'openai/gpt-5'\nmcp = ['unheard-of']",
            "recorded MCP server 'unheard-of' can't be used here",
        ),
        ("[agent.coder]\nmodel = 'openai/gpt-5'", "unknown key 'agent'"),
        ("", "no agents"),
        ("agents = 3", "no agents"),
        ("[agents]\ncoder = 3", "as a table"),
        ("[agents.'a b']\nmodel = 'openai/gpt-5'", "a name has"),
    ],
)
def test_a_fault_in_the_file_names_the_file_and_the_place(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ProfileError, match=says) as error:
        load_profiles(write(tmp_path, text))
    assert "agents.toml" in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="No such file"):
        load_profiles(tmp_path / "none.toml")
