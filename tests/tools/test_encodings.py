"""Files in older encodings: guessed, named in the answer, and edited in what they are written in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore.errors import ToolError
from agentcore.tools import AnyTool
from agentcore_tools import apply_patch_tool, edit_tool, read_file_tool, read_many_tool, write_file_tool
from opened_tool import Editor, open_tool
from rounds import some_quick

JAPANESE = "# 設定ファイル\n名前 = 日本語のテキスト\nend\n"
CODE = "x = 1\n" * 500  # what is ASCII says nothing of the encoding

OLD = [
    ("shift_jis", "cp932", JAPANESE),
    ("euc_jp", "euc_jp", JAPANESE),
    ("gb18030", "gb18030", "# 这是一个配置文件\n名称 = 测试\n"),
    ("big5", "big5", "# 這是一個設定檔案\n名稱 = 測試內容\n"),
    ("euc_kr", "cp949", "# 설정 파일입니다\n이름 = 안녕하세요\n"),
    ("cp1251", "cp1251", "# Это файл настроек программы\nимя = значение\n"),
    ("koi8_r", "koi8_r", "# Это файл настроек программы\nимя = значение\n"),
    ("cp1252", "cp1252", "# Größe und Straße, für Übung €\n"),
    ("cp1252", "cp1252", "café\n"),
]


@pytest.mark.parametrize("around", ["", CODE])
@pytest.mark.parametrize(("written", "guess", "text"), some_quick(OLD, 4))
async def test_an_encoding_that_is_guessed_is_named_and_kept(
    editor: Editor, written: str, guess: str, text: str, around: str
) -> None:
    path = Path(editor.workspace.root, "f")
    path.write_bytes((around + text).encode(written))
    note = f"[Not UTF-8; read as {guess}, which is a guess.]\n"
    seen = await editor("view", path="f", view_range=[around.count("\n") + 1, -1])
    assert seen.text.startswith(note)
    first, *_ = text.split("\n")
    assert seen.text.split("\n")[1].endswith(f"\t{first}")
    told = await editor("str_replace", path="f", old_str=first, new_str=f"{first} {first}")
    assert path.read_bytes() == (around + text.replace(first, f"{first} {first}")).encode(written)
    assert note in told.text
    await editor("undo_edit", path="f")
    assert path.read_bytes() == (around + text).encode(written)


async def test_every_tool_for_files_names_the_guess(tmp_path: Path) -> None:
    path = tmp_path / "f"
    note = "[Not UTF-8; read as cp932, which is a guess.]"
    calls: list[tuple[AnyTool, dict[str, Any], int]] = [
        (read_file_tool(), {"path": "f"}, 0),
        (read_many_tool(), {"paths": ["f"]}, 1),
        (edit_tool(), {"file_path": "f", "old_string": "end", "new_string": "日本"}, 1),
        (apply_patch_tool(), {"patch": "*** Begin Patch\n*** Update File: f\n@@\n-end\n+日本\n*** End Patch"}, 1),
        (write_file_tool(), {"file_path": "f", "content": JAPANESE + "日本\n"}, 1),
    ]
    for tool, arguments, at in calls:
        path.write_bytes(JAPANESE.encode("shift_jis"))
        async with open_tool(tool, tmp_path) as opened:
            told = await opened.call(**arguments)
        assert note in told.text.split("\n")[at]
        assert path.read_bytes().decode("shift_jis").startswith("# 設定ファイル\n")


async def test_what_the_guessed_encoding_can_not_write_is_refused_with_its_name(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_bytes("# Это файл настроек программы\nимя = значение\n".encode("koi8_r"))
    with pytest.raises(ToolError, match="written in koi8_r, which has no '漢'"):
        await editor("str_replace", path="f", old_str="имя", new_str="漢")
    with pytest.raises(ToolError, match=r"does not occur .* \[Not UTF-8; read as koi8_r, which is a guess\.\]"):
        await editor("str_replace", path="f", old_str="другое", new_str="x")


async def test_nothing_is_said_of_an_encoding_that_is_known(tmp_path: Path, editor: Editor) -> None:
    for data in (JAPANESE.encode(), JAPANESE.encode("utf-16"), b"\xef\xbb\xbf" + JAPANESE.encode()):
        (tmp_path / "f").write_bytes(data)
        assert (await editor("view", path="f")).text.startswith("     1\t# 設定")
