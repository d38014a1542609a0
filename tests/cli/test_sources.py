"""Project files and memory in the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agentcore.testing import call, say

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def prompt_of(provider: Any, number: int = -1) -> str:
    """Return the system prompt of a request."""
    first = json.loads(provider.requests[number].content)["messages"][0]
    assert first["role"] == "system"
    return first["content"]


def test_project_files_and_memory_are_read_and_named(cli: Cli) -> None:
    (cli.project / "AGENTS.md").write_text("Use tabs.")
    (cli.project / ".agentcore").mkdir()
    (cli.project / ".agentcore/MEMORY.md").write_text("Tests run with nox.")
    (cli.project / "GEMINI.md").write_bytes(b"\xff")
    with cli.serve("Done.") as provider:
        ended = cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        prompt = prompt_of(provider)
    assert ended.code == 0
    assert "\nread AGENTS.md\n" in ended.out
    assert "project files: GEMINI.md is left out: it is not UTF-8 text." in ended.out
    assert "Use tabs." in prompt
    assert "Tests run with nox." in prompt
    assert f"They would be in {cli.project.parent}/.config/agentcore/MEMORY.md." in prompt


def test_they_can_be_left_out_and_stay_left_out_when_the_conversation_is_resumed(cli: Cli) -> None:
    (cli.project / "AGENTS.md").write_text("Use tabs.")
    with cli.serve("Done.", "Done.", "Done.", "Done.") as provider:
        address = ("--base-url", provider.base_url)
        assert cli.run("run", "Do it.", "-m", "mine", *address, "--no-project-files", "--no-memory").code == 0
        assert cli.run("resume", "Go on, please.", *address).code == 0
        assert [("Use tabs." in prompt_of(provider, n), "MEMORY.md" in prompt_of(provider, n)) for n in (0, 1)] == [
            (False, False),
            (False, False),
        ]
        assert (
            cli.run("run", "Do it.", "-m", "mine", "--id", "second", *address, "--no-memory", "--no-skills").code == 0
        )
        assert ("Use tabs." in prompt_of(provider), "MEMORY.md" in prompt_of(provider)) == (True, False)
        assert cli.run("resume", "second", "Go on.", *address, "--no-project-files").code == 0
        configured = [event["agent"] for event in cli.events("second") if event["kind"] == "agent_configured"]
    assert [[source["name"] for source in agent["context"]["sources"]] for agent in configured[:1]] == [
        ["project_files"]
    ]
    assert "sources" not in configured[-1].get("context", {})


def test_a_file_that_changed_is_appended_when_the_conversation_is_resumed(cli: Cli) -> None:
    path = cli.project / "AGENTS.md"
    path.write_text("Use tabs.")
    with cli.serve("Done.", "Done.") as provider:
        address = ("--base-url", provider.base_url)
        assert cli.run("run", "Do it.", "-m", "mine", *address).code == 0
        path.write_text("Use spaces.")
        ended = cli.run("resume", "Go on, please.", *address)
        prompts = prompt_of(provider, 0), prompt_of(provider, 1)
        last = json.loads(provider.requests[-1].content)["messages"]
    assert prompts[0] == prompts[1]
    assert any("Use spaces." in str(message["content"]) for message in last[1:])
    assert "\nread AGENTS.md\n" in ended.out


def test_a_nested_file_is_shown_when_a_file_there_is_touched(cli: Cli) -> None:
    (cli.project / "src").mkdir()
    (cli.project / "src/AGENTS.md").write_text("Nested words.")
    (cli.project / "src/GEMINI.md").write_bytes(b"\xff")
    (cli.project / "src/a.py").write_text("x = 1\n")
    view = call("file_editor", command="view", path=f"{cli.project}/src/a.py")
    with cli.serve(view, say("Done.")) as provider:
        ended = cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url)
        requests = [request.content.decode() for request in provider.requests]
    assert ["Nested words." in request for request in requests] == [False, True]
    assert "read src/AGENTS.md" in ended.out
    assert ended.out.count("project files: src/GEMINI.md is left out: it is not UTF-8 text.") == 1


@pytest.mark.parametrize("flag", ["", "--no-memory"])
def test_the_file_tools_write_the_users_memory_and_nothing_beside_it(cli: Cli, flag: str) -> None:
    memory = cli.project.parent / ".config/agentcore/MEMORY.md"
    calls = [
        call("file_editor", command="create", path=str(path), file_text="Likes tabs.\n")
        for path in (memory, memory.with_name("rules.json"), memory.with_name("MEMORY.md") / "x")
    ]
    with cli.serve(*calls, say("Done.")) as provider:
        flags = [flag] if flag else []
        assert cli.run("run", "Remember that.", "-m", "mine", "--base-url", provider.base_url, *flags).code == 0
    if flag:
        assert not memory.parent.exists()
    else:
        assert [path.name for path in memory.parent.iterdir()] == ["MEMORY.md"]
        assert memory.read_text() == "Likes tabs.\n"


def test_json_has_one_object_per_line_and_nothing_else(cli: Cli) -> None:
    (cli.project / "AGENTS.md").write_text("Use tabs.")
    ended = cli.play("Done.", flags=["--json"])
    assert ended.lines[-1]["kind"] == "result"
    assert "read AGENTS.md" in ended.err
