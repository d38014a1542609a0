"""The stores that agentcore has keep to the contract that it gives out."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore.record import FileStore, MemoryStore, Store
from agentcore.testing import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestFileStoreThatSyncs(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FileStore(tmp_path / "logs")


class TestFileStoreThatFlushes(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FileStore(tmp_path / "logs", durability="flush")
