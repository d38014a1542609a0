"""What the command line prints, beside the files in `transcripts/`: a log or a script in, text out.

`pytest tests/cli/test_transcripts.py --update` writes the files anew; read the difference before committing it.
"""

from __future__ import annotations

import io
import os
import re
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import pytest
from rich.console import Console
from tests.cli.stories import STORIES
from tests.cli.story import Story

from agentcore.cli.view import View
from agentcore.conversation import StreamDelta
from agentcore.errors import AuthenticationError
from agentcore.events import KNOWN_KINDS
from agentcore.record import EventLog, FileStore
from agentcore.testing import call, calls

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Ended

FOLDER = Path(__file__).parent / "transcripts"
TOUCH = call("terminal", command="touch touched")
NOWHERE = ("-m", "mine", "--base-url", "http://127.0.0.1:9/v1")

# On a slow machine any call may take the second from which on its time is shown.
_SLOW_CALLS = {r"exit code (\d+) after N s": r"exit code \1"}

Compare = Callable[[str, str], None]


@contextmanager
def _kept_free(url: str) -> Generator[None]:
    """Keep the port of a server that has ended from tests beside this one: nothing listens there."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", urlsplit(url).port or 0))
        yield


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Compare:
    """Compare text with the transcript of this name."""

    def compare(name: str, text: str) -> None:
        file = FOLDER / f"{name}.txt"
        if request.config.getoption("--update"):
            file.write_text(text, "utf-8")
        assert text == file.read_text("utf-8"), f"{file.name} differs; --update rewrites it"

    return compare


@pytest.fixture
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def make_old(cli: Cli, *conversation_ids: str) -> None:
    """Have the logs be some 2 hours old, the last one the youngest: an age in hours has one width, however long the test takes."""
    for number, conversation_id in enumerate(conversation_ids):
        changed = time.time() - 9000 + number
        os.utime(cli.log(conversation_id), (changed, changed))


class Transcript:
    """Runs commands and notes them with what they printed, without what differs from run to run."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self.parts: list[str] = []

    def run(self, *arguments: str, columns: int | None = None) -> Ended:
        """Run a command, on a terminal if columns are given."""
        if columns is None:
            ended = self._cli.run(*arguments, env={"COLUMNS": "80"})
            out, code, err = ended.out, ended.code, ended.err
        else:
            code, screen = self._cli.on_terminal(*arguments, columns=columns)
            out, err, ended = screen.text, "", None
        self.note(f"agentcore {' '.join(arguments)}{f'  # {columns} columns' if columns else ''}", out, code, err)
        return ended  # pyright: ignore[reportReturnType] - callers that look at it give no columns

    def note(self, command: str, out: str, code: int = 0, err: str = "") -> None:
        """Add a command with what it printed."""
        shown = out + "".join(f"! {line}\n" for line in err.splitlines())
        self.parts.append(f"$ {command}\n{shown}" + (f"[exit code {code}]\n" if code else ""))

    def text(self, **replaced: str) -> str:
        """Return all of it."""
        text = "\n".join(self.parts)
        for path, name in ((str(self._cli.home), "HOME"), (str(self._cli.project), "PROJECT")):
            text = text.replace(path, name)
        for pattern, name in (
            (r"127\.0\.0\.1:\d{4,}", "127.0.0.1:PORT"), (r"\d+\.\d s\b", "N s"), (r"process \d+ on \S+?([;.])", r"process N on HOST\1"),
            (r"\b\d+ s ago", "N s ago"), (r"[\d,]+ tokens read, [\d,]+ written", "N tokens read, N written"),
            (r"\(\[Errno[^\n]*?\)\)", "(REASON)"), *replaced.items(),
        ):  # fmt: skip
            text = re.sub(pattern, name, text)
        return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


@pytest.mark.usefixtures("_utc")
@pytest.mark.parametrize("name", STORIES)
def test_a_conversation_is_shown_live_and_from_its_log_as_in_its_transcript(
    cli: Cli, compare: Compare, name: str
) -> None:
    story = Story()
    STORIES[name](story)

    async def write() -> None:
        log = await EventLog.create(FileStore(cli.home / "conversations"), name)
        await log.append([[event] for event in story.events])
        await log.close()

    anyio.run(write)
    transcript = Transcript(cli)
    for verbose in (False, True):
        transcript.note(f"the live view{' --verbose' if verbose else ''}", live(story, verbose=verbose))
    transcript.run("log", "show", columns=60)
    transcript.run("log", "show", "--all")
    transcript.run("log", "export", "--format", "markdown")
    text = transcript.text()
    assert set(text) & {"\x1b", "\x9b", "\x07", "\r", "\u202e"} == set()
    compare(name, text)


def test_the_stories_have_every_kind_of_event() -> None:
    seen: set[str] = set()
    for tell in STORIES.values():
        tell(story := Story())
        seen |= {event.kind for event in story.events}
    assert KNOWN_KINDS - seen == {"condensation_summary", "forked", "head_moved"} & KNOWN_KINDS


def live(story: Story, *, verbose: bool) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False, markup=False, emoji=False, _environ={})
    view = View(console, root="/p", verbose=verbose, clock=lambda: 0.0)
    for each in story.happenings:
        if isinstance(each, StreamDelta):
            view.delta(each)
        else:
            view.event(each)
    view.end()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


COMMANDS = [
    "",
    "demo",
    "run",
    "resume",
    "condense",
    "conversations",
    "conversations delete",
    "log",
    "log show",
    "log export",
    "log verify",
    "log repair",
    "skills",
    "skills list",
    "skills check",
    "mcp",
    "mcp list",
    "mcp add",
    "mcp remove",
    "mcp check",
    "mcp trust",
]


def test_help(cli: Cli, compare: Compare) -> None:
    transcript = Transcript(cli)
    for command in COMMANDS:
        ended = transcript.run(*command.split(), "--help")
        assert max(map(len, ended.out.splitlines())) <= 80
    compare("help", transcript.text())


def test_refusals(cli: Cli, compare: Compare) -> None:
    (cli.project / "file").write_text("")
    transcript = Transcript(cli)
    for command in (
        "", "nonsense", "run", "run x --max-cost lots", "run x --max-cost nan", "run x --max-steps 0", "log repair",
        "run x", "run x -m gpt-5", "run x -m anthropic/claude-sonnet-4-5", "run x -m antropic/x", "run x -m nosuch/thing",
        "run x -m mine --base-url localhost:1", "run x -m mine --base-url http://localhost:1 --max-cost 1",
        "run x -m mine --base-url http://localhost:1 --id a/b", "run x -m mine --base-url http://localhost:1 -w folder",
        "run x -m mine --base-url http://localhost:1 -w file", "run - -m mine --base-url http://localhost:1",
        "conversations", "conversations --json", "log show", "resume", "condense", "resume --approve --reject no",
    ):  # fmt: skip
        ended = transcript.run(*command.split())
        assert "Traceback" not in ended.err
    assert cli.ids() == []
    compare("refusals", transcript.text())


def test_runs(cli: Cli, compare: Compare) -> None:
    transcript = Transcript(cli)
    echo = call("terminal", command="echo out; echo err >&2")
    for id_, script, flags in (
        ("done", [calls(echo, text="I look."), "Done."], []),
        ("waiting", [calls(TOUCH, call("terminal", command=f"echo {'x' * 300}"))], ["--confirm", "always"]),
        ("limited", [echo, echo], ["--max-steps", "1"]),
        ("stuck", [echo] * 6, []),
        ("failed", [AuthenticationError("Incorrect API key provided.")], []),
    ):
        with cli.serve(*script) as provider:
            transcript.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url, "--id", id_, *flags)
    compare("runs", transcript.text(**_SLOW_CALLS))


def test_resuming(cli: Cli, compare: Compare) -> None:
    transcript = Transcript(cli)
    retries = ("--retries", "0")
    with cli.serve("All is well.") as provider:
        cli.run("run", "Do it.", "-m", "mine", "--base-url", provider.base_url, "--id", "finished")
    cli.play(TOUCH, flags=["--confirm", "always", "--id", "waiting"])
    with _kept_free(provider.base_url):
        for arguments in (
            ("finished",), ("finished", "--approve", *NOWHERE), ("finished", "--reject", "no", *NOWHERE), ("finished", "more", *retries),
            ("waiting", *NOWHERE, "--max-cost", "1"), ("waiting", *NOWHERE), ("fix", *NOWHERE),
        ):  # fmt: skip
            transcript.run("resume", *arguments)
    cli.play("All is well.", flags=["--id", "waiting-2"])
    transcript.run("resume", "wait", *NOWHERE)
    lines = cli.log("finished").read_bytes().splitlines(keepends=True)
    cli.log("finished").write_bytes(lines[0])
    transcript.run("resume", "finished", *NOWHERE)
    cli.log("finished").write_bytes(b"".join(lines))
    cli.project = cli.project.rename(cli.project.parent / "moved")
    transcript.run("resume", "finished", "go on", *NOWHERE)
    transcript.run("resume", "waiting", *NOWHERE, "--workspace", ".")
    compare("resuming", transcript.text(**{str(cli.project.parent): "PARENT"}))


def test_damage(cli: Cli, compare: Compare) -> None:
    transcript = Transcript(cli)
    cli.play("All is well.", flags=["--id", "log"])
    sound = cli.log().read_bytes()
    lines = sound.splitlines(keepends=True)

    def check(what: str, data: bytes, *commands: str) -> None:
        cli.log().write_bytes(data)
        transcript.parts.append(f"# {what}\n")
        for command in commands:
            transcript.run(*command.split())

    check("sound", sound, "log verify", "log repair log")
    check("an unfinished line", sound + b'{"seq":99,"half', "log verify")
    whole = b"".join([*lines[:-1], lines[-1].replace(b'"seq"', b'"sEq"')])
    check(
        "an unsound last line",
        whole,
        "log verify",
        "resume log more -m mine --base-url http://127.0.0.1:9/v1 --retries 0",
    )
    changed = [line.replace(b'"seq"', b'"sEq"') if number == 1 else line for number, line in enumerate(lines)]
    shown = ("log verify", "log show", "resume", "conversations", "log repair log", "log verify")
    check("a changed line", b"".join(changed), *shown)
    check("nothing is sound", b"nonsense\n" * 3, "log verify", "log repair log")
    compare("damage", transcript.text(**{r"events\.jsonl\.damaged-\S+": "events.jsonl.damaged-N"}))


def test_lists(cli: Cli, compare: Compare) -> None:
    transcript = Transcript(cli)
    ids = ("20261122-034348-46f57b2bcc", "waiting", "third", "last")
    cli.play("Done.", flags=["--id", ids[0]])
    cli.play(TOUCH, flags=["--confirm", "always", "--id", "waiting"])
    with cli.serve("Done.") as provider:
        cli.run(
            "run", f"Say it\n\x1b[31m! {'words ' * 30}", "-m", "mine", "--base-url", provider.base_url, "--id", "third"
        )
    sound = cli.log("third").read_bytes()
    lines = sound.splitlines(keepends=True)
    cli.log("third").write_bytes(b"".join([lines[0], b"nonsense\n", *lines[2:]]))
    cli.play("Done.", flags=["--id", "last"])
    make_old(cli, *ids)
    transcript.run("conversations", "-n", "2")
    cli.log("third").write_bytes(sound)
    make_old(cli, *ids)
    for columns in (120, 58, 44, 26):
        transcript.run("conversations", columns=columns)
    transcript.run("log", "show", "waiting", "--kind", "action", "-k", "message", columns=50)
    transcript.run("log", "show", "waiting", "--kind", "actoin")
    compare("lists", re.sub(r"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d$", "TIME", transcript.text(), flags=re.MULTILINE))
