"""The database of the server beside other connections to the same file."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from agentcore_serve.database import Database

_SCHEMA = "CREATE TABLE IF NOT EXISTS words (word TEXT)"
_OTHER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("INSERT INTO words VALUES ('other')")
database.commit()
database.close()
"""


async def test_a_process_that_closes_it_leaves_the_log_of_one_that_opened_it_twice(tmp_path: Path) -> None:
    path = tmp_path / "serve.sqlite"
    first, second = Database(path, _SCHEMA, durable=True), Database(path, _SCHEMA, durable=True)
    await first.open()
    await second.open()
    try:
        await first.run(lambda database: database.execute("INSERT INTO words VALUES ('first')"))
        await anyio.run_process([sys.executable, "-c", _OTHER, str(path)])
        assert path.with_name("serve.sqlite-wal").exists()
        await second.run(lambda database: database.execute("INSERT INTO words VALUES ('second')"))
    finally:
        await first.close()
        await second.close()
    again = Database(path, _SCHEMA, durable=True)
    await again.open()
    try:
        rows = await again.read(lambda database: database.execute("SELECT word FROM words").fetchall())
        assert rows == [("first",), ("other",), ("second",)]
    finally:
        await again.close()
