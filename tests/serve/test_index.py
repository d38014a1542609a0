"""The index: pages, filters and search; a cache that is made again."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentcore.events import ConversationStatus
from agentcore.testing import say
from agentcore.wire.requests import ConversationInfo, ConversationSpec
from agentcore_serve.index import ConversationIndex, Listed
from agentcore_serve.refused import Refused
from hubs import ANN, serving
from talks import scripted

START = datetime(2026, 1, 1, tzinfo=UTC)


def listed(number: int, text: str = "", **fields: object) -> Listed:
    """Return a conversation that began `number` seconds after the first."""
    values = {"id": f"c{number}", "status": ConversationStatus.IDLE, "owner": "ann", **fields}
    when = START + timedelta(seconds=number)
    return Listed(ConversationInfo.model_validate({**values, "created": when, "modified": when}), 1.0, text)


@pytest.fixture
async def index() -> object:
    index = ConversationIndex(None)
    await index.open()
    yield index
    await index.close()


async def ids(index: ConversationIndex, **query: object) -> list[str]:
    """Return the ids of a page."""
    page = await index.page(["ann"], **query)  # pyright: ignore[reportArgumentType]
    return [info.id for info in page.read().items]


async def test_pages_go_from_the_newest_to_the_oldest_and_miss_none(index: ConversationIndex) -> None:
    await index.put([listed(number) for number in range(25)])
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await index.page(["ann"], cursor=cursor, limit=10)
        found += [info.id for info in page.read().items]
        assert page.encode() == page.read().model_dump_json().encode()
        await index.put([listed(100 + len(found))])  # a newer one moves none from one page to the next
        if (cursor := page.next) is None:
            break
    assert found == [f"c{number}" for number in reversed(range(25))]


async def test_filters_and_owners(index: ConversationIndex) -> None:
    await index.put(
        [
            listed(1, tags={"team": "a"}),
            listed(2, status=ConversationStatus.RUNNING, tags={"team": "b"}),
            listed(3, owner="ben", tags={"team": "a"}),
        ]
    )
    assert await ids(index) == ["c2", "c1"]
    assert await ids(index, status="running") == ["c2"]
    assert await ids(index, tag="team") == ["c2", "c1"]
    assert await ids(index, tag="team=a") == ["c1"]
    await index.put([listed(1, tags={})])
    assert await ids(index, tag="team=a") == []
    await index.remove("c2")
    assert await ids(index) == ["c1"]


async def test_a_search_finds_words_and_beginnings_and_takes_anything_as_words(index: ConversationIndex) -> None:
    await index.put(
        [listed(1, "Fix the Überlauf in parser.py"), listed(2, "Write docs"), listed(3, "half \ud800 pair")]
    )
    assert await ids(index, text="pars fix") == ["c1"]
    assert await ids(index, text="uberlauf") == ["c1"]
    assert await ids(index, text="half") == ["c3"]
    await index.put([Listed(listed(1).info, 2.0, None)])
    assert await ids(index, text="parser") == ["c1"]  # what can be searched stayed
    for strange in ('"', "a OR", "NEAR(", "*", "-", "text:", "\0", "'; DROP TABLE listed", "(", "^", ""):
        await ids(index, text=strange)
    assert len(await ids(index)) == 3


async def test_a_wrong_cursor_is_refused(index: ConversationIndex) -> None:
    with pytest.raises(Refused):
        await index.page(["ann"], cursor="x")


@pytest.mark.parametrize("fate", ["deleted", "older", "damaged"])
async def test_an_index_that_is_gone_older_or_damaged_is_made_again_of_the_logs(tmp_path: Path, fate: str) -> None:
    async with serving(scripted([say("the answer is marmalade")]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(title="Breakfast", tags={"meal": "1"}))
        await served.conversation.run("go")
        before = (await hub.list(ANN)).read()
    path = tmp_path / "store" / "index.sqlite"
    if fate == "deleted":
        path.unlink()
    elif fate == "damaged":
        path.write_bytes(b"this is not a database" * 1_000)
    else:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 0")
        connection.execute("DROP TABLE tags")
        connection.close()
    async with serving(scripted([]), tmp_path) as hub:
        await hub.is_caught_up.wait()
        (info,) = (await hub.list(ANN, text="marmal", tag="meal=1")).read().items
        (was,) = before.items
        assert (info.id, info.owner, info.title, info.last_words) == (was.id, "ann", "Breakfast", was.last_words)
        assert info.created == was.created
