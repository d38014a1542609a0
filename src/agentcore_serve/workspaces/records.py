"""Which workspaces there are: ids, owners and specs in a table of `serve.sqlite`, which outlive the server."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, final

from agentcore.workspace import WorkspaceSpec

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS workspaces (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, folder TEXT NOT NULL, fresh INTEGER NOT NULL, spec TEXT, created TEXT NOT NULL
) STRICT
"""
_BUSY_SECONDS: Final = 10


class WorkspaceRecord(NamedTuple):
    """One workspace."""

    id: str
    owner: str
    folder: str
    """Below the server's root."""
    fresh: bool
    """True if the server made the folder for this workspace alone; it goes with it."""
    spec: WorkspaceSpec | None
    """The spec from which it is made again; None until it was open once."""
    created: datetime


@final
class WorkspaceRecords:
    """The table. All of it blocks."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> list[WorkspaceRecord]:
        """Return all workspaces; make the table first if need be."""
        with self._open() as database:
            database.execute(_TABLE)
            rows = database.execute("SELECT id, owner, folder, fresh, spec, created FROM workspaces ORDER BY created")
            return [_record(row) for row in rows]

    def save(self, record: WorkspaceRecord) -> None:
        """Add a workspace, or what has changed about it."""
        spec = record.spec.model_dump_json() if record.spec else None
        row = (record.id, record.owner, record.folder, record.fresh, spec, record.created.isoformat())
        with self._open() as database:
            database.execute("INSERT OR REPLACE INTO workspaces VALUES (?, ?, ?, ?, ?, ?)", row)

    def remove(self, workspace_id: str) -> None:
        """Remove a workspace."""
        with self._open() as database:
            database.execute("DELETE FROM workspaces WHERE id = ?", (workspace_id,))

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        # A connection each time: these calls are rare, and each comes from another thread.
        with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as database, database:
            database.execute("PRAGMA synchronous = FULL")
            yield database


def _record(row: tuple[str, str, str, int, str | None, str]) -> WorkspaceRecord:
    workspace_id, owner, folder, fresh, spec, created = row
    return WorkspaceRecord(
        workspace_id,
        owner,
        folder,
        bool(fresh),
        WorkspaceSpec.model_validate_json(spec) if spec else None,
        datetime.fromisoformat(created).astimezone(UTC),
    )
