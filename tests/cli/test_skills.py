"""`agentcore skills`: the list for people and programs, and the verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def write(project: Path, name: str, front: str) -> Path:
    path = project / ".agents/skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\n{front}\n---\nDo it.\n")
    return path


@pytest.fixture
def skills(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    write(cli.project, "deploy", "name: deploy\ndescription: Use it to deploy.\ntriggers:\n- prod")
    write(cli.project, "odd", 'name: "a\\e[2Jb"\ndescription: "\\e]0;x\\a title"')
    write(cli.project, "broken", "name: [")
    return cli


def test_list_shows_names_sources_ways_and_problems_and_nothing_moves_the_cursor(skills: Cli) -> None:
    ended = skills.run("skills", "list", "--workspace", str(skills.project))
    assert ended.code == 0
    assert "deploy  project  skill tool; /deploy; words: prod\n  Use it to deploy.\n" in ended.out
    assert ".agents/skills/broken/SKILL.md:" in ended.out.splitlines()[-1] + ended.out
    assert "\x1b" not in ended.out


def test_list_as_json_is_an_object_per_line(skills: Cli) -> None:
    ended = skills.run("skills", "list", "--workspace", str(skills.project), "--json")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [(line["name"], line["source"], line["tool"]) for line in lines if "name" in line] == [
        ("deploy", "project", True),
        ("odd", "project", True),
    ]
    assert any("broken/SKILL.md:2:" in line["problem"] for line in lines if "problem" in line)


def test_check_names_file_and_line_and_ends_with_1_where_one_is_malformed(skills: Cli) -> None:
    folder = skills.project / ".agents/skills"
    ended = skills.run("skills", "check", str(folder))
    assert ended.code == 1
    assert f"{folder}/deploy/SKILL.md:4: `triggers` is not a field of the specification" in ended.out
    assert "3 skills checked, 3 malformed." in ended.out
    assert "\x1b" not in ended.out
    good = write(skills.project, "good", "name: good\ndescription: Use it.")
    for path in (good, good.parent):
        ended = skills.run("skills", "check", str(path))
        assert (ended.code, ended.out) == (0, "1 skill checked, none malformed.\n")


def test_check_of_a_folder_without_skills_and_of_nothing(skills: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert skills.run("skills", "check", str(tmp_path / "empty")).code == 1
    ended = skills.run("skills", "check", str(tmp_path / "nothing"))
    assert ended.code != 0
    assert "No such file or folder" in ended.err


def test_what_a_message_activates_is_named_and_a_misspelt_call_gets_a_hint_once(skills: Cli) -> None:
    with skills.serve("Done.", "Done.") as provider:
        address = ("--base-url", provider.base_url)
        ended = skills.run("run", "/deploy staging", "-m", "mine", *address)
        again = skills.run("resume", "/deplo staging\n/deplo\n/tmp", *address)
    assert "\nread skill deploy (/deploy)\n" in ended.out
    assert again.out.count("no skill 'deplo'; did you mean 'deploy'?") == 1
    assert "tmp'" not in again.out


def test_notices_are_recorded_once_and_three_of_them_printed(skills: Cli) -> None:
    for number in range(5):
        write(skills.project, f"bad{number}", "name: [")
    with skills.serve("Done.", "Done.") as provider:
        address = ("--base-url", provider.base_url)
        first = skills.run("run", "/deplo x", "-m", "mine", *address)
        recorded = [event["update"] for event in skills.events() if event.get("update", {}).get("fact") == "context"]
        second = skills.run("resume", "Go on.", *address)
        after = [event["update"] for event in skills.events() if event.get("update", {}).get("fact") == "context"]
    assert len(recorded) >= 7
    assert after == recorded
    assert first.out.count("/SKILL.md:") == 3
    assert f"and {len(recorded) - 4} more: agentcore skills check" in first.out
    assert "no skill 'deplo'; did you mean 'deploy'?" in first.out
    assert "SKILL.md" not in second.out


def test_check_of_a_file_that_is_not_a_skill_says_so(skills: Cli) -> None:
    for name in ("AGENTS.md", "notes.txt"):
        (skills.project / name).write_text("Use tabs.")
        ended = skills.run("skills", "check", str(skills.project / name))
        assert (ended.code, ended.out) == (2, "")
        assert f"{name} is not a skill" in ended.err


def test_a_misspelt_condenser_gets_a_hint(skills: Cli) -> None:
    ended = skills.run("run", "Do it.", "-m", "mine", "--condenser", "sumary")
    assert ended.code == 2
    assert "Did you mean 'summary'?" in " ".join(ended.err.replace("│", " ").split())
