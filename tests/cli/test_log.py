"""`agentcore log` and `agentcore conversations`: what they do besides printing. What they print is in the transcripts."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from agentcore.testing import call, calls

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """The program, with a log in its home."""
    write = call("file_editor", command="create", path="a.py", file_text="x = 1\n")
    seq = call("terminal", command="seq 40; echo 'a ``` fence'")
    cli.play(calls(seq, text="I look."), calls(write, text="I write."), "Done.", flags=["--id", "the-log"])
    return cli


def test_show_prints_only_the_requested_events(cli: Cli) -> None:
    head = len(cli.events())
    shown = cli.run("log", "show", "--after", str(head - 1)).out
    assert [line for line in shown.splitlines()[1:] if f" {head} " not in line] == []
    assert cli.run("log", "show", "--after", str(head)).out == ""
    some = cli.run("log", "show", "--kind", "action", "-k", "message").out
    labels = [line.split()[2] for line in some.splitlines() if line[:5].strip().isdigit()]
    assert labels == ["user", "agent", "call", "agent", "call", "agent"]


@pytest.mark.slow
def test_show_follows_what_another_process_writes(cli: Cli) -> None:
    gate = call("terminal", command="until [ -e go ]; do sleep 0.05; done; echo passed")
    with (
        cli.serve(gate, "Done.") as provider,
        cli.start("run", "x", "-m", "mine", "--base-url", provider.base_url, "--id", "live") as writer,
    ):
        writer.shows("until [ -e go ]")
        with cli.start("log", "show", "live", "--follow") as reader:
            reader.shows("terminal $ until [ -e go ]")
            (cli.project / "go").touch()
            reader.shows("│ passed")
            reader.shows(" agent    Done.")
            reader.types("\x03")
            assert reader.ends() == 130
            assert "Traceback" not in reader.text
        assert writer.ends() == 0


def test_export_writes_every_event_with_its_blobs(cli: Cli) -> None:
    big = "b" * 70_000
    cli.play(call("file_editor", command="create", path="big", file_text=f"{big}\n"), "Done.", flags=["--id", "big"])
    assert "blob:sha256:" in cli.log("big").read_text()
    out = cli.run("log", "export", "big").out
    assert big in out
    assert "blob:sha256:" not in out
    logged = [{key: event[key] for key in event.keys() - {"crc", "group"}} for event in cli.events("the-log")]
    assert cli.run("log", "export", "the-log").lines == logged


def test_a_fence_in_the_output_cannot_end_its_block_in_markdown(cli: Cli) -> None:
    assert cli.run("log", "export", "-o", "story.md").code == 0
    story = (cli.project / "story.md").read_text()
    assert story.startswith("# Do it.\n")
    assert "\n### ````terminal $ seq 40; echo 'a ``` fence'````\n" in story
    assert story.count("````") % 2 == 0
    assert "\n\n\n" not in story


def test_export_replaces_no_file_unless_forced_and_leaves_no_part_behind(cli: Cli) -> None:
    (cli.project / "a.py").unlink()
    refused = cli.run("log", "export", "-o", "nowhere/x.md")
    assert (refused.code, refused.err) == (
        2, f"error: Cannot write 'nowhere/x.md': no such folder: '{cli.project}/nowhere'.\n",
    )  # fmt: skip
    (cli.project / "folder").mkdir()
    refused = cli.run("log", "export", "-o", "folder", "--force")
    assert (refused.code, refused.err) == (2, "error: Cannot write 'folder': Is a directory.\n")
    (cli.project / "mine.jsonl").write_text("precious")
    refused = cli.run("log", "export", "-o", "mine.jsonl")
    assert (refused.code, refused.err) == (2, "error: 'mine.jsonl' already exists; use --force to replace it.\n")
    assert (cli.project / "mine.jsonl").read_text() == "precious"
    assert cli.run("log", "export", "-o", "mine.jsonl", "--force").code == 0
    assert len((cli.project / "mine.jsonl").read_text().splitlines()) == len(cli.events())
    assert sorted(path.name for path in cli.project.iterdir()) == ["folder", "mine.jsonl"]


def test_verify_finds_a_blob_that_was_changed(cli: Cli) -> None:
    big = call("file_editor", command="create", path="big", file_text="b" * 70_000 + "\n")
    cli.play(big, "Done.", flags=["--id", "big"])
    (blob, *_) = (cli.log("big").parent / "blobs").iterdir()
    blob.write_bytes(b"something else")
    ended = cli.run("log", "verify", "big")
    assert ended.code == 1
    assert "is not what was written" in ended.out + ended.err


def test_repair_keeps_the_intact_part_and_a_backup(cli: Cli, tmp_path: Path) -> None:
    lines = cli.log().read_bytes().splitlines(keepends=True)
    groups: list[int] = [event["group"] for event in cli.events()]
    last = max(groups, key=groups.count)  # the number of its last line
    begin = groups.index(last)
    lines[last - 1] = lines[last - 1].replace(b'"seq"', b'"sEq"')
    cli.log().write_bytes(b"".join(lines))
    verified = cli.run("log", "verify", "--home", str(cli.home), env={"AGENTCORE_HOME": "/nowhere"})
    assert verified.code == 1
    assert f"agentcore log repair the-log --home {cli.home}" in verified.out
    ended = cli.run("log", "repair", "the-log")
    assert ended.code == 0
    assert last - begin > 1  # none of its group is kept
    assert f"{begin} events kept, {len(lines) - begin} lines cut off (line {last}: " in ended.out
    (backup,) = cli.log().parent.glob("events.jsonl.damaged*")
    assert f"Backup: {backup}" in ended.out
    assert backup.read_bytes() == b"".join(lines)
    assert cli.run("log", "verify").code == 0
    assert cli.run("log", "show").code == 0


@pytest.mark.slow
def test_conversations_as_json(cli: Cli) -> None:
    cli.play(call("terminal", command="true"), flags=["--confirm", "always", "--id", "second"])
    listed = {line["id"]: line for line in cli.run("conversations", "--json").lines}
    assert listed["the-log"]["workspace"] == str(cli.project)
    assert listed["the-log"]["events"] == len(cli.events("the-log"))
    assert listed["second"]["pending"] == 1
    assert len(cli.run("conversations", "-n", "1", "--json").lines) == 1
    assert len(cli.run("conversations", "-n", "0", "--json").lines) == 2


def test_reading_makes_no_home(cli: Cli) -> None:
    shutil.rmtree(cli.home)
    assert cli.run("conversations").code == 0
    assert cli.run("log", "show").code == 2
    assert not cli.home.exists()


@pytest.mark.slow
def test_a_reader_that_is_gone_is_no_error(cli: Cli) -> None:
    ended = cli.spawn(program=["bash", "-c", f"{sys.executable} -m agentcore log show --all | head -1"])
    assert (ended.out, ended.err) == (f"the-log in {cli.project}\n", "")


def test_a_list_fits_the_terminal_and_never_cuts_an_id(cli: Cli) -> None:
    for columns in (20, 60, 200):
        _, screen = cli.on_terminal("conversations", columns=columns)
        assert "the-log" in screen.text
        assert max(map(len, screen.text.splitlines())) <= columns
        assert "Do it." in screen.text


def test_sentences_are_wrapped_between_words_on_a_terminal(cli: Cli) -> None:
    cli.log().write_bytes(cli.log().read_bytes() + b'{"seq":99,"half')
    code, screen = cli.on_terminal("log", "verify", columns=40)
    assert code == 3
    assert "\nThe end is cut off when the conversation\nis resumed." in screen.text
    assert max(map(len, screen.text.splitlines())) <= 40
