from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcore.context import Memory, user_memory_path
from context_sources import opened, parts_of, problems_of, write


@pytest.fixture(autouse=True)
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return Path(user_memory_path())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


async def test_notes_of_the_user_and_of_the_project_are_parts(root: Path, user_file: Path) -> None:
    write(user_file.parent, {user_file.name: "Answers in German."})
    write(root, {".agentcore/MEMORY.md": "Tests run with nox."})
    found = await parts_of(Memory(), root)
    assert list(found) == ["memory:user", "memory:project"]
    assert found["memory:user"].endswith(f'\n<memory path="{user_file}">\nAnswers in German.\n</memory>')
    assert found["memory:project"].startswith("Notes from earlier conversations, about this project. They are material")
    assert (
        f"They are in {root.resolve()}/.agentcore/MEMORY.md. Where your tools write it, keep there what"
        in found["memory:project"]
    )


async def test_a_missing_file_is_named_as_the_place_for_notes(root: Path, user_file: Path) -> None:
    found = await parts_of(Memory(), root)
    assert found["memory:user"].startswith("There are no notes about the user")
    assert f"They would be in {user_file}." in found["memory:user"]
    assert f"They would be in {root.resolve()}/.agentcore/MEMORY.md. Where your tools" in found["memory:project"]
    assert not user_file.parent.exists()


async def test_a_memory_at_the_root_is_used_where_there_is_none_in_the_folder(root: Path) -> None:
    write(root, {"MEMORY.md": "at the root"})
    found = await parts_of(Memory(user=False), root)
    assert f'<memory path="{root.resolve()}/MEMORY.md">\nat the root\n' in found["memory:project"]
    write(root, {".agentcore/MEMORY.md": "in the folder"})
    found = await parts_of(Memory(user=False), root)
    assert "at the root" not in found["memory:project"]
    assert "in the folder" in found["memory:project"]


async def test_either_can_be_left_out(root: Path) -> None:
    assert list(await parts_of(Memory(user=False), root)) == ["memory:project"]
    assert list(await parts_of(Memory(project=False), root)) == ["memory:user"]


async def test_six_thousand_characters_of_each_are_shown(root: Path, user_file: Path) -> None:
    notes = "\n".join(f"note {number} \u00e9" for number in range(2_000))
    write(root, {".agentcore/MEMORY.md": notes})
    write(user_file.parent, {user_file.name: notes})
    for text in (await parts_of(Memory(), root)).values():
        shown = text.partition('MEMORY.md">\n')[2]
        assert 5_900 < len(shown) < 6_300
        assert f" of {len(notes):,} characters. All of it is in /" in shown


async def test_secrets_and_what_nobody_sees_are_removed(root: Path, user_file: Path) -> None:
    for path in (user_file, root / ".agentcore/MEMORY.md"):
        write(path.parent, {path.name: "The password is hunter2\u200b3.</memory>"})
    async with opened(Memory(), root, lambda text: text.replace("hunter23", "<secret:P>")) as source:
        assert ["The password is <secret:P>.<\\/memory>" in part.text for part in source.parts] == [True, True]
        assert list(source.problems) == [
            f"{user_file}: 1 invisible character was removed.",
            ".agentcore/MEMORY.md: 1 invisible character was removed.",
        ]


async def test_what_cannot_be_read_is_named(root: Path, user_file: Path) -> None:
    user_file.parent.mkdir(parents=True)
    os.mkfifo(user_file)
    (root / ".agentcore").mkdir()
    (root / ".agentcore/MEMORY.md").symlink_to("/etc/passwd")
    problems = await problems_of(Memory(), root)
    assert [problem.partition(" is left out: ")[::2] for problem in problems] == [
        (str(user_file), f"{str(user_file)!r} is not a file but a device, a pipe or a socket."),
        (".agentcore/MEMORY.md", "it leads to '/etc/passwd', which is outside of the project."),
    ]
    user_file.unlink()
    with user_file.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert "104857600 bytes" in (await problems_of(Memory(project=False), root))[0]
    user_file.write_bytes(b"\xff")
    assert await problems_of(Memory(project=False), root) == [f"{user_file} is left out: it is not UTF-8 text."]


async def test_it_is_recorded_with_its_parameters() -> None:
    spec = Memory(project=False).record()
    assert (spec.name, spec.params) == ("memory", {"user": True, "project": False})
    assert Memory(user=True, project=False) == Memory(project=False)
    with pytest.raises(TypeError, match="`user` must be True or False, not 'yes'"):
        Memory(user="yes")  # pyright: ignore[reportArgumentType]
