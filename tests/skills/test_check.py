"""The strict rules: the verdict on each of thirty skills is that of the specification's own reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from skills_ref import validate  # pyright: ignore[reportMissingTypeStubs] - it has none

from agentcore.skills.check import check_skill
from agentcore.skills.frontmatter import Malformed
from agentcore.skills.skill import Source, decode, read_skill

GOOD = {
    "plain": "name: plain\ndescription: Use it.",
    "all-fields": (
        "name: all-fields\ndescription: Use it.\nlicense: MIT\ncompatibility: Needs git.\n"
        "allowed-tools: Bash(git:*) Read\nmetadata:\n  author: someone\n  version: '1.0'"
    ),
    "quoted": "name: 'quoted'\ndescription: \"Use it: now\"",
    "folded": "name: folded\ndescription: >\n  Use it\n  for this.",
    "literal": "name: literal\ndescription: |\n  Use it\n  for that.",
    "a": "name: a\ndescription: b",
    "with-digits-42": "name: with-digits-42\ndescription: Use it.",
    "42": "name: 42\ndescription: The name looks like a number.",
    "true": "name: true\ndescription: The name looks like a boolean.",
    "n" * 64: f"name: {'n' * 64}\ndescription: As long as can be.",
    "long": f"name: long\ndescription: {'d' * 1024}",
    "compatible": f"name: compatible\ndescription: Use it.\ncompatibility: {'c' * 500}",
    "commented": "# a comment\nname: commented\ndescription: Use it. # another",
    "größe": "name: größe\ndescription: Letters of any language.",
    "dashes": "name: dashes\ndescription: a - b -- c",
}
BROKEN = {
    "no-name": "description: Use it.",
    "no-description": "name: no-description",
    "empty-description": "name: empty-description\ndescription: ''",
    "Upper": "name: Upper\ndescription: Use it.",
    "other": "name: another\ndescription: Use it.",
    "-edge": "name: -edge\ndescription: Use it.",
    "two--hyphens": "name: two--hyphens\ndescription: Use it.",
    "under_score": "name: under_score\ndescription: Use it.",
    "n" * 65: f"name: {'n' * 65}\ndescription: One too long.",
    "too-long": f"name: too-long\ndescription: {'d' * 1025}",
    "incompatible": f"name: incompatible\ndescription: Use it.\ncompatibility: {'c' * 501}",
    "extra": "name: extra\ndescription: Use it.\ntriggers:\n- word",
    "colon": "name: colon\ndescription: Use it: now",
    "twice": "name: twice\nname: twice\ndescription: Use it.",
    "brackets": "name: brackets\ndescription: Use it.\nmetadata: {a: b}",
}


def write(folder: Path, name: str, front: str) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir()
    path.write_text(f"---\n{front}\n---\nDo it.\n", encoding="utf-8")
    return path


def check(path: Path) -> list[Malformed]:
    source = Source("project", "project", str(path), path.name)
    return list(check_skill(decode(path.read_bytes()), source))


@pytest.mark.parametrize(("name", "front"), (GOOD | BROKEN).items(), ids=list(GOOD | BROKEN))
def test_check_agrees_with_skills_ref(name: str, front: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, front)
    theirs = validate(path.parent)
    assert bool(check(path)) == bool(theirs) == (name in BROKEN), theirs


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("no frontmatter", 1, "There is no frontmatter"),
        ("--- x\n---\n", 1, "`---` alone"),
        ("---\nname: x\n", 1, "not closed"),
        ("---\n---\n", 1, "not a mapping"),
        ("---\n- a\n---\n", 1, "not a mapping"),
        ("---\nname: x\ndescription: 'a\n---\n", 3, "Not YAML"),
        ("---\nname: x\ndescription: &a b\n---\n", 3, "Anchors"),
        ("---\nname: x\ndescription: !!str b\n---\n", 3, "Tags"),
        ("---\nname: x\ndescription: b\u200bc\n---\n", 3, "invisible"),
        ("---\nname: x\ndescription: b\n...\na: b\n---\n", 5, "Not YAML"),
        ("---\nname: x\ndescription: b\ncompatibility:\n- a\n---\n", 4, "`compatibility` has to be text"),
        ("---\nname: x\ndescription: b\n? [a]\n: c\n---\n", 4, "name of a field is not text"),
        ('---\nname: x\ndescription: "\\UFFFFFFFF"\n---\n', 1, "Not YAML"),
    ],
)
def test_a_problem_has_its_line(text: str, line: int, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "x" / "SKILL.md"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    found = check(path)
    assert [(each.line, sentence in each.sentence) for each in found][:1] == [(line, True)], [*map(str, found)]


@pytest.mark.parametrize("name", ["Upper", "other", "under_score", "too-long", "extra", "colon", "twice", "brackets"])
def test_loading_is_lenient_where_checking_is_strict(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, BROKEN[name])
    skill, _ = read_skill(path.read_text(), Source("project", "project", str(path), path.name))
    assert skill.name == ("another" if name == "other" else name)
    assert skill.description.startswith("Use it" if name != "too-long" else "ddd")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("---\ntype: other\n---\n", "`type` has to be one of"),
        ("---\ntype: knowledge\n---\n", "needs `triggers`"),
        ("---\ntriggers:\n  a: b\n---\n", "`triggers` has to be a list"),
        ("---\nname: a/b\n---\n", "can't be the name"),
        ("---\ntype: knowledge\ntriggers: [a]\nversion: 1.0.0\nagent: CodeActAgent\n---\n", None),
        ("No frontmatter at all.", None),
    ],
)
def test_a_single_markdown_file_has_rules_of_its_own(text: str, sentence: str | None) -> None:
    found = check_skill(text, Source("project", "project", "/p/.openhands/microagents/x.md", "x.md"))
    assert [sentence is not None and sentence in each.sentence for each in found] == (
        [] if sentence is None else [True]
    )
