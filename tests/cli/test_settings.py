from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import agentcore
from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings, check_writable, read_settings


def test_a_flag_wins_over_the_environment() -> None:
    variables = {"AGENTCORE_MODEL": "openai/a", "AGENTCORE_BASE_URL": "http://a", "AGENTCORE_HOME": "/a"}
    flags = read_settings(model="openai/b", base_url="http://b", home="/b", confirm="risky", environment=variables)
    assert (flags.model, flags.base_url, flags.home, flags.confirm) == ("openai/b", "http://b", "/b", "risky")
    found = read_settings(environment={**variables, "AGENTCORE_CONFIRM": "always"})
    assert (found.model, found.base_url, found.home, found.confirm) == ("openai/a", "http://a", "/a", "always")
    assert found.command("resume x") == "agentcore resume x"
    assert read_settings(home="/my place").command("resume x") == "agentcore resume x --home '/my place'"


def test_a_variable_that_is_set_to_nothing_is_not_set() -> None:
    settings = read_settings(environment={"AGENTCORE_MODEL": "", "AGENTCORE_API_KEY": "", "OPENAI_API_KEY": ""})
    assert (settings.model, settings.api_key, settings.keys) == (None, None, frozenset())


def test_conversations_are_kept_in_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert read_settings(environment={"PATH": "/bin"}).conversations == str(tmp_path / "agentcore" / "conversations")


def test_the_key_shows_nowhere() -> None:
    settings = read_settings(environment={"AGENTCORE_API_KEY": "sk-very-secret"})
    assert "very-secret" not in repr(settings)
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "sk-very-secret"


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match=r"AGENTCORE_CONFIRM is 'sometimes'.* never, always, risky"):
        read_settings(environment={"AGENTCORE_CONFIRM": "sometimes"})


def test_a_command_that_is_told_starts_this_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "agentcore", tmp_path / "my env" / "agentcore"
    for script in (here, there):
        script.parent.mkdir()
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)

    def rendered(started: str, *path: Path) -> str:
        monkeypatch.setattr(sys, "argv", [started])
        return read_settings(environment={"PATH": os.pathsep.join(map(str, path))}).command("resume")

    assert rendered(str(there), there.parent) == "agentcore resume"
    assert rendered(str(there), here.parent, there.parent) == f"'{there}' resume"
    assert rendered(str(there), tmp_path) == f"'{there}' resume"
    module = f"{Path(agentcore.__file__).parent}/__main__.py"
    assert rendered(module, tmp_path) == f"{sys.orig_argv[0]} -m agentcore resume"
    monkeypatch.setattr(sys, "executable", str(here.with_name("python")))
    assert rendered(module, here.parent) == "agentcore resume"


def test_conversations_can_be_kept_below_a_folder_that_can_be_written(tmp_path: Path) -> None:
    good = Settings(home=str(tmp_path / "a" / "b"))
    assert check_writable(good) is good
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "file/below", "link"):
        with pytest.raises(UsageError, match=r"is not a folder.* --home"):
            check_writable(Settings(home=str(tmp_path / name)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="is not writable"):
        check_writable(Settings(home=str(tmp_path / "a")))
