from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from agentcore.context import ProjectFiles
from context_sources import follow, opened, parts_of, problems_of, write


async def test_each_file_of_the_root_is_a_part_that_is_marked(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".git/HEAD": "",
            "AGENTS.md": "Use tabs.",
            "CLAUDE.md": "Run make.",
            "GEMINI.md": "Be short.",
            ".cursorrules": "No classes.",
            ".github/copilot-instructions.md": "Write tests.",
            "README.md": "not shown",
        },
    )
    async with opened(ProjectFiles(), tmp_path) as source:
        parts = source.parts
        assert source.problems == ()
    assert [part.name for part in parts] == [
        "file:AGENTS.md",
        "file:CLAUDE.md",
        "file:GEMINI.md",
        "file:.cursorrules",
        "file:.github/copilot-instructions.md",
    ]
    assert parts[0].text.startswith("Conventions from AGENTS.md. It was written for this project, not by the user")
    assert parts[0].text.endswith('\n<project_file path="AGENTS.md">\nUse tabs.\n</project_file>')


async def test_a_folder_without_such_files_has_no_parts(tmp_path: Path) -> None:
    async with opened(ProjectFiles(), tmp_path) as source:
        assert (source.parts, source.problems) == ((), ())
        assert await follow(source, tmp_path, "a.py", "no/such/file.py") == {}


async def test_nested_files_are_shown_once_when_a_file_there_is_touched_and_the_closest_comes_last(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        {
            "AGENTS.md": "root",
            "a/AGENTS.md": "middle",
            "a/b/CLAUDE.md": "closest",
            "a/b/x.py": "",
            "c/AGENTS.md": "other",
        },
    )
    async with opened(ProjectFiles(), tmp_path) as source:
        assert [part.name for part in source.parts] == ["file:AGENTS.md"]
        found = await follow(source, tmp_path, "a/b/x.py")
        assert list(found) == ["file:a/AGENTS.md", "file:a/b/CLAUDE.md"]
        assert "for the files in a/b/, where it comes before those of folders above" in found["file:a/b/CLAUDE.md"]
        assert await follow(source, tmp_path, "a/b/x.py", "a/b/y.py", "a/z.py", ".", "../elsewhere") == {}
        # A folder that is listed is touched too, and so is one that was made meanwhile.
        assert list(await follow(source, tmp_path, "c")) == ["file:c/AGENTS.md"]
        write(tmp_path, {"new/AGENTS.md": "new"})
        assert list(await follow(source, tmp_path, "new/x.py")) == ["file:new/AGENTS.md"]


async def test_what_the_model_was_shown_before_comes_again_after_a_new_opening(tmp_path: Path) -> None:
    write(tmp_path, {"a/AGENTS.md": "nested"})
    for _ in range(2):
        async with opened(ProjectFiles(), tmp_path) as source:
            assert list(await follow(source, tmp_path, "a/x.py")) == ["file:a/AGENTS.md"]


async def test_an_interrupted_look_is_made_again(tmp_path: Path) -> None:
    write(tmp_path, {"a/AGENTS.md": "nested"})
    async with opened(ProjectFiles(), tmp_path) as source:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await follow(source, tmp_path, "a/x.py")
        assert scope.cancelled_caught
        assert list(await follow(source, tmp_path, "a/x.py")) == ["file:a/AGENTS.md"]


async def test_the_same_content_is_shown_once(tmp_path: Path) -> None:
    write(tmp_path, {"AGENTS.md": "same\n", "GEMINI.md": "same", "a/AGENTS.md": "same", "b/AGENTS.md": "x" * 50_000})
    write(tmp_path, {"CLAUDE.md": "x" * 50_000})
    (tmp_path / ".cursorrules").symlink_to("AGENTS.md")
    async with opened(ProjectFiles(), tmp_path) as source:
        assert [part.name for part in source.parts] == ["file:AGENTS.md", "file:CLAUDE.md"]
        assert await follow(source, tmp_path, "a/x", "b/x") == {}
        assert source.problems == ()


async def test_a_link_to_agents_md_still_imports(tmp_path: Path) -> None:
    write(tmp_path, {"AGENTS.md": "See @docs/style.md", "docs/style.md": "style"})
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert list(await parts_of(ProjectFiles(), tmp_path)) == ["file:AGENTS.md", "file:docs/style.md"]


async def test_the_folders_above_are_read_up_to_the_repository(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "AGENTS.md": "outside",
            "repo/.git/HEAD": "",
            "repo/AGENTS.md": "repository",
            "repo/.github/copilot-instructions.md": "copilot",
            "repo/packages/CLAUDE.md": "packages, @../shared.md",
            "repo/shared.md": "shared",
            "repo/packages/one/AGENTS.md": "one",
        },
    )
    found = await parts_of(ProjectFiles(), tmp_path / "repo/packages/one")
    assert list(found) == [
        "file:../../AGENTS.md",
        "file:../CLAUDE.md",
        "file:../../shared.md",
        "file:AGENTS.md",
        "file:../../.github/copilot-instructions.md",
    ]
    assert "Conventions from ../CLAUDE.md, above your folder." in found["file:../CLAUDE.md"]


async def test_a_workspace_that_is_the_repository_reads_nothing_above(tmp_path: Path) -> None:
    write(
        tmp_path, {".git/HEAD": "", "AGENTS.md": "outer", "inner/.git": "gitdir: ../x", "inner/a.md": "@../AGENTS.md"}
    )
    assert await parts_of(ProjectFiles(), tmp_path / "inner") == {}


async def test_a_repository_that_another_user_could_have_made_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "work"
    write(tmp_path, {".git/HEAD": "", "AGENTS.md": "planted", "work/AGENTS.md": "mine"})
    if os.geteuid():
        pytest.skip("needs root, to make a file of another user")
    os.chown(tmp_path / ".git", 12345, -1)
    async with opened(ProjectFiles(), root) as source:
        assert [part.name for part in source.parts] == ["file:AGENTS.md"]
        assert source.problems == (
            f"The files above the folder are left out: {tmp_path.resolve()} is not this user's alone.",
        )


async def test_imports_are_parts_of_their_own_behind_what_imports_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "CLAUDE.md": "Read @docs/a.md and @AGENTS.md and @docs/c.md, `@docs/code.md`, @alice, @types/node",
            "AGENTS.md": "agents, @docs/not.md",
            "GEMINI.md": "gemini",
            "docs/a.md": "a: @b.md",
            "docs/b.md": "b",
            "docs/c.md": "c",
            "docs/code.md": "code",
            "docs/not.md": "only CLAUDE.md imports",
            "types/node/x": "",
        },
    )
    async with opened(ProjectFiles(), tmp_path) as source:
        assert [part.name for part in source.parts] == [
            "file:AGENTS.md",
            "file:CLAUDE.md",
            "file:docs/a.md",
            "file:docs/b.md",
            "file:docs/c.md",
            "file:GEMINI.md",
        ]
        assert "Conventions from docs/b.md, which docs/a.md imports." in source.parts[3].text
        assert source.problems == ()


async def test_import_loops_are_named_once(tmp_path: Path) -> None:
    write(tmp_path, {"CLAUDE.md": "@a.md @CLAUDE.md", "a.md": "@b.md", "b.md": "@a.md @CLAUDE.md and @link.md"})
    (tmp_path / "link.md").symlink_to("CLAUDE.md")
    async with opened(ProjectFiles(), tmp_path) as source:
        assert [part.name for part in source.parts] == ["file:CLAUDE.md", "file:a.md", "file:b.md"]
        assert sorted(source.problems) == [
            "CLAUDE.md: its imports lead back to 'CLAUDE.md'; it is shown once.",
            "b.md: its imports lead back to 'CLAUDE.md'; it is shown once.",
            "b.md: its imports lead back to 'a.md'; it is shown once.",
        ]


async def test_imports_go_five_files_deep(tmp_path: Path) -> None:
    write(tmp_path, {"CLAUDE.md": "@1.md", **{f"{n}.md": f"@{n + 1}.md" for n in range(1, 9)}})
    async with opened(ProjectFiles(), tmp_path) as source:
        assert [part.name for part in source.parts][-1] == "file:5.md"
        assert source.problems == ("5.md: its import '6.md' is left out: imports go 5 files deep.",)


async def test_a_thousand_imports_are_bounded(tmp_path: Path) -> None:
    write(tmp_path, {f"d/{n}.md": f"text {n}" for n in range(1_000)})
    write(tmp_path, {"CLAUDE.md": "\n".join(f"@d/{n}.md" for n in range(1_000))})
    async with opened(ProjectFiles(), tmp_path) as source:
        assert len(source.parts) == 101
        assert source.problems == ("Some imports are left out: 100 are read at most.",)


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.md", "~/.bashrc", "docs/../../outside.md", "/"])
async def test_an_import_from_outside_is_not_even_looked_at(tmp_path: Path, path: str) -> None:
    write(tmp_path, {"outside.md": "not of the project", "p/CLAUDE.md": f"@{path} fin"})
    async with opened(ProjectFiles(), tmp_path / "p") as source:
        assert [part.name for part in source.parts] == ["file:CLAUDE.md"]
        assert "not of the project" not in source.parts[0].text
        assert source.problems == (f"CLAUDE.md: its import {path!r} is left out: it is outside of the project.",)


async def test_missing_imports_are_named_where_they_can_only_be_paths(tmp_path: Path) -> None:
    write(tmp_path, {"CLAUDE.md": "@docs/gone.md @alice @scope/package", "docs/x": ""})
    assert await problems_of(ProjectFiles(), tmp_path) == [
        "docs/gone.md is left out: there is no such file. (Imported by CLAUDE.md.)"
    ]


async def test_a_long_file_is_cut_at_a_line_and_says_where_the_whole_is(tmp_path: Path) -> None:
    lines = [f"line {number} \u00e9" for number in range(6_000)]
    write(tmp_path, {"AGENTS.md": "\n".join(lines)})
    text = (await parts_of(ProjectFiles(), tmp_path))["file:AGENTS.md"]
    assert 31 * 1024 < len(text.encode()) < 34 * 1024
    *_, last, notice, closing = text.splitlines()
    assert last in lines
    assert notice.endswith(f"of {len(chr(10).join(lines)):,} characters. All of it is in AGENTS.md.]")
    assert closing == "</project_file>"


async def test_all_together_are_bounded(tmp_path: Path) -> None:
    write(tmp_path, {f"{n}/AGENTS.md": f"{n}\n" + "x" * 30_000 for n in range(6)})
    async with opened(ProjectFiles(), tmp_path) as source:
        found = await follow(source, tmp_path, *(f"{n}/x" for n in range(6)))
        assert list(found) == [f"file:{n}/AGENTS.md" for n in range(4)]
        assert source.problems == tuple(
            f"{n}/AGENTS.md is left out: project files together are shown up to 131,072 bytes." for n in (4, 5)
        )


async def test_it_is_recorded_by_name() -> None:
    spec = ProjectFiles().record()
    assert (spec.name, spec.params) == ("project_files", {})
    assert ProjectFiles() == ProjectFiles()
