"""Reading, checking and mending logs, sound and damaged ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SCRIPT = """[
    calls(call("terminal", command="seq 40; echo 'a ``` fence'"), text="I look."),
    calls(call("file_editor", command="create", path="a.py", file_text="x = 1\\n"), text="I write."),
    "Done.",
]"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a log once, for all the tests of this file: each works on a copy."""
    folder = tmp_path_factory.mktemp("made")
    environment = {**os.environ, "AGENTCORE_HOME": str(folder / "home")}
    program = Path(__file__).parent / "scripted_program.py"
    subprocess.run(
        [sys.executable, program, SCRIPT, "--id", "the-log"],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def cli(cli: Cli, made: Path) -> Cli:
    """Give the program, with the log in its home."""
    shutil.copytree(made / "home", cli.home)
    return cli


async def test_show_tells_what_happened(cli: Cli, made: Path) -> None:
    ended = await cli.run("log", "show")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"the-log in {made}\n")
    assert " user     Do it.\n" in ended.out
    call = next(event for event in cli.events() if event["kind"] == "action")
    lines = [line.partition(":")[2][6:] for line in ended.out.splitlines() if line.startswith(f"{call['seq']:>5} ")]
    assert lines == ["agent    I look.", "call     terminal $ seq 40; echo 'a ``` fence'"]
    assert f" result   exit code 0 (terminal #{call['seq']})\n" in ended.out
    assert " call     file_editor create a.py\n     │ +x = 1\n" in ended.out
    (first,) = [line for line in ended.out.splitlines() if line.startswith("    1 ")]
    assert "the model (ScriptedLLM 'scripted'), which is not recorded, with terminal" in first
    assert first.count("not recorded") == 1
    assert " agent    Done.\n" in ended.out
    assert ended.out.splitlines()[-1].startswith("finished")


async def test_show_cuts_what_is_long_unless_all_is_wanted(cli: Cli) -> None:
    short, whole = await cli.run("log", "show"), await cli.run("log", "show", "--all")
    assert "more lines (--all)" in short.out
    assert "     │ 20\n" not in short.out
    assert all(f"     │ {number}\n" in whole.out for number in range(1, 41))
    assert " started " in whole.out


async def test_show_begins_behind_an_event(cli: Cli) -> None:
    head = len(cli.events())
    ended = await cli.run("log", "show", "--after", str(head - 1))
    assert ended.out.splitlines()[1:] == [line for line in ended.out.splitlines() if f" {head} " in line]
    assert (await cli.run("log", "show", "--after", str(head))).out == ""


async def test_show_keeps_to_some_kinds(cli: Cli) -> None:
    ended = await cli.run("log", "show", "--kind", "action", "-k", "message")
    labels = [line.split()[2] for line in ended.out.splitlines() if line[:5].strip().isdigit()]
    assert labels == ["user", "agent", "call", "agent", "call", "agent"]
    wrong = await cli.run("log", "show", "--kind", "actoin")
    assert wrong.code == 2
    assert "There are: action, " in wrong.err.replace("\n", " ")


async def test_show_follows_what_another_process_writes(cli: Cli) -> None:
    gate = 'call("terminal", command="until [ -e go ]; do sleep 0.05; done; echo passed")'
    async with cli.on_terminal(script=f'[{gate}, "Done."]', arguments=["--id", "live"]) as writer:
        await writer.shows("until [ -e go ]")
        async with cli.on_terminal("log", "show", "live", "--follow") as reader:
            await reader.shows("terminal $ until [ -e go ]")
            (cli.project / "go").touch()
            await reader.shows("│ passed")
            await reader.shows(" agent    Done.")
            await reader.types("\x03")
            assert await reader.ends() == 130
            assert "Traceback" not in reader.text
        assert await writer.ends() == 0


async def test_export_gives_every_event_as_json(cli: Cli) -> None:
    ended = await cli.run("log", "export", "the-log", env={"PYTHONIOENCODING": "ascii"})
    kept = [{key: value for key, value in event.items() if key not in {"crc", "group"}} for event in cli.events()]
    assert ended.lines == kept


async def test_export_has_what_the_log_keeps_in_blobs(cli: Cli) -> None:
    script = """[call("file_editor", command="create", path="big", file_text="b" * 70_000 + "\\n"), "Done."]"""
    await cli.play(script, "--id", "big")
    assert "blob:sha256:" in cli.log("big").read_text()
    ended = await cli.run("log", "export", "big")
    assert "b" * 70_000 in ended.out
    assert "blob:sha256:" not in ended.out


async def test_export_tells_the_story_in_markdown(cli: Cli) -> None:
    ended = await cli.run("log", "export", "-o", "story.md")
    assert (ended.code, ended.out) == (0, "")
    story = (cli.project / "story.md").read_text()
    assert story.startswith("# Do it.\n")
    assert "## User\n" in story
    assert ": finished, " in story.splitlines()[2]
    assert "\n\nI look.\n\n### ````terminal $ seq 40; echo 'a ``` fence'````\n\n*#" in story
    assert "\n\nI write.\n\n### `file_editor create a.py`\n\n*#" in story
    assert "\n```diff\n+x = 1\n```\n" in story
    assert "\n```diff\n--- /dev/null\n+++ " in story
    (call,) = [event["seq"] for event in cli.events() if event.get("tool_name") == "terminal" and "reply_id" in event]
    assert f", result of `terminal #{call}`:* exit code 0\n\n````text\n1\n" in story
    assert "\n\n\n" not in story
    # What a tool wrote can't end the block that it stands in.
    assert "````text\n" in story
    assert story.count("````") % 2 == 0


async def test_what_the_agent_finishes_with_is_its_words(cli: Cli) -> None:
    await cli.play("""[call("finish", message="All *done*.\\n\\n- one")]""", "--id", "finishing")
    shown = await cli.run("log", "show", "finishing")
    assert " agent    All *done*.\n     │ \n     │ - one\n" in shown.out
    assert shown.out.split(" call ")[1].splitlines()[0].strip() == "finish"
    story = (await cli.run("log", "export", "finishing", "--format", "markdown")).out
    assert "\n\nAll *done*.\n\n- one\n\n### `finish`\n" in story


async def test_a_file_that_can_not_be_written_is_named_as_it_was_given(cli: Cli) -> None:
    refused = await cli.run("log", "export", "-o", "nowhere/x.md")
    assert refused.code == 2
    said = " ".join(refused.err.split())
    assert said == f"error: 'nowhere/x.md' can't be written: there is no folder '{cli.project}/nowhere'."
    (cli.project / "folder").mkdir()
    refused = await cli.run("log", "export", "-o", "folder", "--force")
    assert (refused.code, refused.err) == (2, "error: 'folder' can't be written: Is a directory.\n")
    assert [path.name for path in cli.project.iterdir()] == ["folder"]


async def test_export_does_not_replace_a_file_unless_told(cli: Cli) -> None:
    (cli.project / "mine.jsonl").write_text("precious")
    refused = await cli.run("log", "export", "-o", "mine.jsonl")
    assert refused.code == 2
    assert "--force" in refused.err
    assert (cli.project / "mine.jsonl").read_text() == "precious"
    assert (await cli.run("log", "export", "-o", "mine.jsonl", "--force")).code == 0
    assert len((cli.project / "mine.jsonl").read_text().splitlines()) == len(cli.events())


async def test_verify_says_that_a_log_is_sound(cli: Cli) -> None:
    ended = await cli.run("log", "verify")
    assert (ended.code, ended.out) == (0, f"the-log\nsound, {len(cli.events())} events\n")


async def test_verify_says_what_end_is_unfinished(cli: Cli) -> None:
    content = cli.log().read_bytes()
    cli.log().write_bytes(content[:-20])
    ended = await cli.run("log", "verify")
    assert ended.code == 3
    group = json.loads(content.splitlines()[-1])["group"]
    sound = sum(json.loads(line)["group"] < group for line in content.splitlines())
    assert f"sound, {sound} events, with an unfinished end" in ended.out
    assert cli.log().read_bytes() == content[:-20]  # looking changes nothing


def damage(cli: Cli, line: int) -> bytes:
    """Change a word in the middle of a line; give the file as it is then."""
    lines = cli.log().read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"source"', b'"sourcf"')
    damaged = b"".join(lines)
    cli.log().write_bytes(damaged)
    return damaged


async def test_verify_names_the_damaged_line_and_the_repair(cli: Cli) -> None:
    damage(cli, 5)
    ended = await cli.run("log", "verify")
    assert ended.code == 1
    assert "damaged: line 5: the checksum does not fit the line" in ended.out
    assert "Lines 1 to 4 are sound" in ended.out
    assert "agentcore log repair the-log" in ended.out


async def test_damage_in_the_first_line_leaves_nothing_to_salvage(cli: Cli) -> None:
    damage(cli, 1)
    for ended in (await cli.run("log", "verify"), await cli.run("log", "show")):
        assert ended.code == 1
        said = " ".join((ended.out + ended.err).split())
        assert "No line before it is sound: there is nothing to salvage." in said
        assert "repair" not in said
        assert "to 0" not in said
    repaired = await cli.run("log", "repair", "the-log")
    assert repaired.code == 0
    assert "0 events kept" in repaired.out
    assert "Nothing is left that could be gone on with." in repaired.out
    assert "resume" not in repaired.out


async def test_damage_in_the_second_line_is_said_of_one_line(cli: Cli) -> None:
    damage(cli, 2)
    assert "Line 1 is sound. The file" in (await cli.run("log", "verify")).out


async def test_verify_finds_a_blob_that_is_not_what_was_written(cli: Cli) -> None:
    script = """[call("file_editor", command="create", path="big", file_text="b" * 70_000 + "\\n"), "Done."]"""
    await cli.play(script, "--id", "big")
    (blob, *_) = (cli.log("big").parent / "blobs").iterdir()
    blob.write_bytes(b"something else")
    ended = await cli.run("log", "verify")
    assert ended.code == 1
    assert "is not what was written" in (ended.out + ended.err).replace("\n", " ")


async def test_repair_keeps_the_sound_part_and_the_file_as_it_was(cli: Cli) -> None:
    total = len(cli.events())
    damaged = damage(cli, 5)
    ended = await cli.run("log", "repair", "the-log")
    assert ended.code == 0
    # Line 5 is the last of a group of three: none of them is kept.
    assert f"2 events kept, {total - 2} lines cut off (line 5: the checksum does not fit the line)" in ended.out
    (backup,) = cli.log().parent.glob("events.jsonl.damaged*")
    assert f"The log as it was: {backup}" in ended.out
    assert backup.read_bytes() == damaged
    assert (await cli.run("log", "verify")).code == 0
    assert (await cli.run("log", "show")).code == 0


async def test_repair_leaves_a_sound_log_alone(cli: Cli) -> None:
    before = cli.log().read_bytes()
    ended = await cli.run("log", "repair", "the")
    assert (ended.code, ended.out) == (0, f"the-log\nsound, {len(cli.events())} events; nothing was changed\n")
    assert cli.log().read_bytes() == before


async def test_repair_does_not_touch_a_log_that_is_being_written(cli: Cli) -> None:
    wait = 'call("terminal", command="echo begun; until [ -e go ]; do sleep 0.05; done")'
    async with cli.on_terminal(script=f'[{wait}, "Done."]', arguments=["--id", "busy"]) as screen:
        await screen.shows("│ begun")
        ended = await cli.run("log", "repair", "busy")
        assert ended.code == 1
        assert "is being written by process" in ended.err.replace("\n", " ")
        (cli.project / "go").touch()
        assert await screen.ends() == 0


async def test_a_damaged_log_can_not_be_shown_and_says_why(cli: Cli) -> None:
    damage(cli, 3)
    ended = await cli.run("log", "show")
    assert ended.code == 1
    assert ended.err.startswith("error: ")
    assert "line 3" in ended.err


async def test_conversations_are_listed_with_the_damaged_ones(cli: Cli, made: Path) -> None:
    await cli.play(
        '[call("terminal", command="true")]', "--confirm", "--id", "second", "--message", "Say it\n\x1b[31m!"
    )
    await cli.play('["Done."]', "--id", "third")
    damaged = cli.log("third").read_bytes().splitlines(keepends=True)
    damaged[1] = b"nonsense\n"
    cli.log("third").write_bytes(b"".join(damaged))
    ended = await cli.run("conversations")
    assert (ended.code, ended.err) == (0, "")
    rows = {line.split()[0]: line for line in ended.out.splitlines()}
    assert rows.keys() == {"id", "the-log", "second", "third"}
    assert " finished " in rows["the-log"]
    assert rows["the-log"].endswith("Do it.")
    assert " waiting " in rows["second"]
    assert rows["second"].endswith("Say it \\x1b[31m!")
    assert " damaged " in rows["third"]
    listed = {line["id"]: line for line in (await cli.run("conversations", "--json")).lines}
    assert listed["the-log"]["workspace"] == str(made)
    assert listed["the-log"]["events"] == len(cli.events("the-log"))
    assert listed["second"]["pending"] == 1
    assert "line 2" in listed["third"]["problem"]


async def test_few_conversations_are_listed_if_few_are_wanted(cli: Cli) -> None:
    for number in range(2):
        await cli.play('["Done."]', "--id", f"c-{number}")
    ended = await cli.run("conversations", "-n", "2")
    assert "c-1" in ended.out
    assert "the-log" not in ended.out
    assert "agentcore conversations --limit 0 shows all" in ended.out
    assert len((await cli.run("conversations", "-n", "0", "--json")).lines) == 3


async def test_where_there_is_no_conversation_it_is_said_how_to_begin_one(cli: Cli) -> None:
    shutil.rmtree(cli.home)
    ended = await cli.run("conversations")
    assert ended.code == 0
    assert "agentcore run 'your task'" in ended.out
    assert (await cli.run("conversations", "--json")).out == ""
    shown = await cli.run("log", "show")
    assert shown.code == 2
    assert "There is no conversation in" in shown.err
    assert not cli.home.exists()


async def test_a_log_that_nobody_reads_to_its_end_is_no_error(cli: Cli, made: Path) -> None:
    command = " ".join(cli.command("log", "show", "--all"))
    ended = await cli.run(program=["bash", "-c", f"{command} | head -1"])
    assert (ended.out, ended.err) == (f"the-log in {made}\n", "")


@pytest.mark.parametrize("columns", [20, 60, 200])
async def test_a_list_fits_the_terminal_and_never_cuts_an_id(cli: Cli, columns: int) -> None:
    async with cli.on_terminal("conversations", columns=columns) as screen:
        assert await screen.ends() == 0
    assert "the-log" in screen.text
    assert max(map(len, screen.text.splitlines())) <= columns
    assert "Do it." in screen.text


async def test_what_is_shown_of_a_log_is_folded_between_words(cli: Cli) -> None:
    async with cli.on_terminal("log", "show", columns=60) as screen:
        assert await screen.ends() == 0
    assert " agent    the model (ScriptedLLM 'scripted'),\n     │ which is not recorded, with terminal, " in screen.text
    assert " call     terminal $ seq 40; echo 'a ``` fence'\n" in screen.text
    sentences = [line for line in screen.text.splitlines()[1:] if " $ " not in line and "[exit code" not in line]
    assert max(map(len, sentences)) <= 60


async def test_a_narrow_list_has_the_task_below_and_spares_columns(cli: Cli) -> None:
    long = "20261122-034348-46f57b2bcc"
    shutil.copytree(cli.log("the-log").parent, cli.home / "conversations" / long)
    meta = cli.home / "conversations" / long / "meta.json"
    meta.write_text(meta.read_text().replace("the-log", long))
    task = "words " * 30
    await cli.play('["Done."]', "--id", "third", "--message", task)
    for columns, spared in ((58, ["cost"]), (44, ["cost", "events", "changed"]), (26, ["status"])):
        async with cli.on_terminal("conversations", columns=columns) as screen:
            assert await screen.ends() == 0
        lines = screen.text.splitlines()
        assert max(map(len, lines)) <= columns, lines
        assert not set(spared) & set(lines[0].split())
        assert [line.split()[0] for line in lines[1::2]].count(long) == 1
        below = next(after for line, after in pairwise(lines) if line.startswith("third"))
        assert below.startswith("  words words")
        assert below.endswith("…")


async def test_the_other_home_is_named_in_the_commands_that_are_told(cli: Cli) -> None:
    damage(cli, 3)
    with anyio.fail_after(30):
        ended = await cli.run("log", "verify", "--home", str(cli.home), env={"AGENTCORE_HOME": "/nowhere"})
    assert ended.code == 1
    assert f"agentcore log repair the-log --home {cli.home}" in ended.out
