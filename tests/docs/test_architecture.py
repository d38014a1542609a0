"""The architecture page names files that exist, and a message passes few of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import anyio

from agentcore import Agent, Conversation, FileStore
from agentcore.testing import ScriptedLLM

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src"
CORE = SOURCE / "agentcore"
MOST = 12

_PATH = re.compile(r"`((?:[\w.]+/)+[\w.]+|[\w.]+\.(?:py|toml))`")


def find(path: str) -> Path | None:
    """Return the file or folder that a path on the page means."""
    places = (CORE / path, SOURCE / path, ROOT / path)
    return next((place for place in places if place.exists()), None)


def way(name: str) -> list[str]:
    """Return the files of a table on the page, in order: the first one of each row."""
    table = PAGE.split(f"<!-- path: {name} -->")[1].split("\n\n", 2)[1]
    return re.findall(r"^\| \d+ \| `([\w./]+)`", table, re.MULTILINE)


def test_every_path_on_the_page_is_there() -> None:
    named = _PATH.findall(PAGE)
    assert len(named) > 50
    assert [path for path in named if find(path) is None] == []


def test_the_way_of_a_message_is_in_few_files() -> None:
    assert 8 <= len(way("send")) <= MOST
    assert len(way("run")) <= MOST


async def test_a_message_passes_every_file_of_its_way(tmp_path: Path) -> None:
    passed: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            passed.add(frame.f_code.co_filename)

    store = FileStore(tmp_path / "logs")
    async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path, store=store) as conversation:
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            with anyio.fail_after(30):
                seq = await conversation.send("Hello")
                event = await anext(conversation.events(after=seq - 1))
        finally:
            sys.setprofile(before)
    assert event.kind == "message"
    # A value has no code of its own that runs: a command and an event are classes.
    values = {"commands.py", "events/shown.py"}
    assert [path for path in way("send") if path not in values and str(find(path)) not in passed] == []
