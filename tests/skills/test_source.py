"""Skills as a source of context: the list, and what activates a text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

import pytest

from agentcore.context import Happened
from agentcore.skills import OpenSkills, Skills

Open: TypeAlias = Callable[..., AbstractAsyncContextManager[OpenSkills]]
Write: TypeAlias = Callable[..., Path]


def microagent(project: Path, name: str, text: str, under: str = ".openhands/microagents") -> None:
    path = project / under / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_skills_are_listed_by_name_and_description_without_their_text(open_skills: Open, write: Write) -> None:
    write("deploy", "SECRET PLAN")
    async with open_skills() as skills:
        (part,) = skills.parts
        assert part.name == "skills"
        assert "- deploy (project): Use for deploy." in part.text
        assert "SECRET PLAN" not in part.text
        assert skills.problems == ()


async def test_without_skills_there_is_nothing_in_the_prompt(open_skills: Open) -> None:
    async with open_skills() as skills:
        assert (skills.parts, skills.problems) == ((), ())
        assert list(await skills.follow(Happened(messages=["/deploy"], touched=["/a"]))) == []


@pytest.mark.parametrize("folder", [".agents", ".agentcore", ".claude", ".openhands"])
@pytest.mark.parametrize("kind", ["skills", "microagents"])
async def test_skills_are_found_in_every_folder_of_project_and_home(
    folder: str, kind: str, open_skills: Open, write: Write, home: Path
) -> None:
    write("mine", under=f"{folder}/{kind}", at=home)
    write("ours", under=f"{folder}/{kind}/group")
    async with open_skills() as skills:
        assert {name: skill.origin for name, skill in skills.library.skills.items()} == {
            "ours": "project",
            "mine": "user",
        }
        assert skills.library.skills["mine"].where == f"~/{folder}/{kind}/mine/SKILL.md"
    async with open_skills(user=False) as skills:
        assert list(skills.library.skills) == ["ours"]
    async with open_skills(project=False) as skills:
        assert list(skills.library.skills) == ["mine"]


async def test_the_project_wins_over_the_user_over_a_package_and_shadowing_is_named(
    open_skills: Open, write: Write, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages"
    info = packages / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentcore.skills]\nacme = acme_skills\ngone = acme_gone\n")
    (packages / "acme_skills").mkdir()
    (packages / "acme_skills" / "__init__.py").write_text("raise AssertionError('it is not imported')\n")
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])
    for name, places in {"one": (home, packages), "two": (packages,), "three": (None, home, packages)}.items():
        for place in places:
            under = "acme_skills/skills" if place == packages else ".agents/skills"
            write(name, under=under, at=place)
    async with open_skills() as skills:
        assert {name: skill.label for name, skill in skills.library.skills.items()} == {
            "three": "project",
            "one": "user",
            "two": "package acme",
        }
        assert [problem for problem in skills.problems if "same name" in problem] == [
            "~/.agents/skills/three/SKILL.md: .agents/skills/three/SKILL.md has a skill of the same name, 'three', and wins.",
            "acme: skills/one/SKILL.md: ~/.agents/skills/one/SKILL.md has a skill of the same name, 'one', and wins.",
            "acme: skills/three/SKILL.md: .agents/skills/three/SKILL.md has a skill of the same name, 'three', and wins.",
        ]
        assert any("'acme_gone' was not found" in problem for problem in skills.problems)


async def test_a_word_of_a_message_activates_a_microagent_as_a_whole_and_in_any_case(
    open_skills: Open, project: Path
) -> None:
    microagent(project, "kube.md", "---\ntriggers: [kubectl, helm chart, c++]\ntype: knowledge\n---\nUse k9s.\n")
    async with open_skills() as skills:

        async def activated(message: str) -> list[str]:
            return [part.name for part in await skills.follow(Happened(messages=[message]))]

        assert await activated("Run KUBECTL now") == ["skill:kube"]
        assert await activated("a Helm Chart, please") == ["skill:kube"]
        assert await activated("in C++.") == ["skill:kube"]
        assert await activated("kubectls and mykubectl and c+") == []
        (part,) = await skills.follow(Happened(messages=["kubectl"]))
        assert "Use k9s." in part.text
        assert "comes with the project, and not from the user" in part.text
        assert "has 'kubectl'" in part.text


async def test_what_is_shown_is_not_shown_again_until_the_user_calls_it_with_arguments(
    open_skills: Open, project: Path
) -> None:
    microagent(project, "kube.md", "---\ntriggers: [kubectl]\npaths: ['*.yaml']\n---\nUse k9s on $ARGUMENTS.\n")
    shown = {"skill:kube"}
    async with open_skills() as skills:
        happened = Happened(messages=["kubectl", "/kube"], touched=[f"{project}/a.yaml"], shown=shown)
        assert list(await skills.follow(happened)) == []
        (part,) = await skills.follow(Happened(messages=["/kube staging"], shown=shown))
        assert "Use k9s on staging." in part.text


async def test_a_call_by_name_fills_in_arguments_and_names_those_that_are_missing(
    open_skills: Open, project: Path
) -> None:
    microagent(
        project,
        "review.md",
        "---\ntype: task\ninputs:\n  - name: PR\n    description: the pull request\n  - name: DEPTH\n---\n"
        "Review {{ PR }} and ${DEPTH}; first: $1; all: $ARGUMENTS; price $5x {{ OTHER }}",
    )
    microagent(project, "plain.md", "---\ntype: task\n---\nJust do it.")
    async with open_skills() as skills:

        async def called(message: str) -> str:
            (part,) = await skills.follow(Happened(messages=[message]))
            return part.text

        text = await called('Please:\n  /review "a b" very deep $1')
        assert 'Review a b and very deep $1; first: a b; all: "a b" very deep $1; price x {{ OTHER }}' in text
        assert "DEPTH=" not in text
        assert "not passed" not in text
        text = await called("/review DEPTH=2")
        assert "Review {{ PR }} and 2;" in text
        assert "not passed: PR (the pull request)" in text
        assert "Just do it.\n\nArguments: don't wait" in await called("/plain don't wait")
        assert list(await skills.follow(Happened(messages=["see src/plain", "a /plain b", "/etc/review"]))) == []


async def test_touching_a_file_activates_the_skills_that_are_for_it(
    open_skills: Open, project: Path, write: Write
) -> None:
    write("migrate", "Mind the locks.", "paths: 'db/migrations/, *.sql'")
    write("only-web", "Web.", "paths:", "  - web/**/*.ts", "  - '!web/gen/'")
    async with open_skills() as skills:

        async def activated(*paths: str) -> list[str]:
            happened = Happened(touched=[f"{project}/{path}" for path in paths])
            return [part.name for part in await skills.follow(happened)]

        assert await activated("db/migrations/deep/1.py", "a.sql") == ["skill:migrate"]
        assert await activated("x/y/z.sql", "web/a/b.ts") == ["skill:migrate", "skill:only-web"]
        assert await activated("db/models.py", "other/web/a.ts") == []
        outside = Happened(touched=["/elsewhere/a.sql", f"{project}", f"{project}x/a.sql"])
        assert list(await skills.follow(outside)) == []


async def test_microagents_without_triggers_and_repo_md_are_always_shown(open_skills: Open, project: Path) -> None:
    microagent(project, "repo.md", "Tabs, not spaces.")
    microagent(project, "style.md", "---\ntype: repo\nname: style\ntriggers: [x]\n---\nShort names.")
    microagent(project, "quiet.md", "---\ntype: knowledge\n---\nNobody asks for this.")
    microagent(project, "README.md", "About these files.")
    microagent(project, "notes.md", "Notes of a person.", under=".claude/skills")
    async with open_skills() as skills:
        assert [part.name for part in skills.parts] == ["skills", "skill:repo", "skill:style"]
        assert "Tabs, not spaces." in skills.parts[1].text
        assert "- quiet (project)" in skills.parts[0].text
        assert "style" not in skills.parts[0].text


async def test_a_skill_that_only_the_user_may_call_is_neither_listed_nor_found_by_the_model(
    open_skills: Open, write: Write
) -> None:
    write("release", "Tag it.", "disable-model-invocation: true")
    async with open_skills() as skills:
        assert list(skills.parts) == []
        (part,) = await skills.follow(Happened(messages=["/release"]))
        assert "Tag it." in part.text


async def test_the_files_of_a_skill_are_named_and_no_command_in_it_is_run(
    open_skills: Open, write: Write, project: Path
) -> None:
    folder = write("pdf", "Now: !`touch ran`").parent
    for name in ("scripts/fill.py", "references/forms.md", "assets/logo.png", ".hidden/x"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    async with open_skills() as skills:
        (part,) = await skills.follow(Happened(messages=["/pdf"]))
        assert "assets/logo.png, references/forms.md, scripts/fill.py" in part.text
        assert "hidden" not in part.text
        assert f"Its folder is {folder}" in part.text
        assert "!`touch ran`" in part.text
        assert not (project / "ran").exists()


async def test_the_list_has_every_name_and_cuts_long_descriptions_only(open_skills: Open, write: Write) -> None:
    for number in range(50):
        path = write(f"s{number:02}", "x")
        long = "long " * 180 if number % 2 else "Short."
        path.write_text(f"---\nname: s{number:02}\ndescription: {long}\n---\n")
    async with open_skills() as skills:
        (part,) = skills.parts
        assert len(part.text) <= 8_000
        assert len(part.text) > 7_000
        assert all(f"- s{number:02} (project): " in part.text for number in range(50))
        assert part.text.count("Short.\n") == 25
        assert "[25 of the descriptions are cut" in part.text


async def test_a_list_without_room_for_all_names_says_how_many_are_missing(open_skills: Open, write: Write) -> None:
    for number in range(300):
        write(f"a-skill-with-a-rather-long-name-{number:03}")
    async with open_skills() as skills:
        (part,) = skills.parts
        listed = part.text.count("\n- ")
        assert len(part.text) <= 8_000
        assert f"[{300 - listed} more skills are not listed" in part.text


async def test_a_text_is_read_when_it_is_activated(open_skills: Open, write: Write) -> None:
    path = write("deploy", "Old.")
    async with open_skills() as skills:
        write("deploy", "New.")
        (part,) = await skills.follow(Happened(messages=["/deploy"]))
        assert "New." in part.text
        path.unlink()
        assert list(await skills.follow(Happened(messages=["/deploy"]))) == []
        assert "No such file" in skills.problems[-1]


def test_the_source_is_recorded_and_refuses_what_it_does_not_know() -> None:
    spec = Skills(user=False).record()
    assert (spec.name, spec.params) == ("skills", {"project": True, "user": False, "packages": True})
    assert Skills(**spec.params) == Skills(user=False)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="did you mean `packages`"):
        Skills(package=True)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="`user` must be True or False"):
        Skills(user="me")  # pyright: ignore[reportArgumentType]
