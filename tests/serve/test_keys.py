"""Keys: made once, kept as a hash, verified until they are revoked or expire."""

from __future__ import annotations

import re
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from pydantic import SecretStr

from agentcore_serve.auth.database import DatabaseDamaged, open_auth_database
from agentcore_serve.auth.identity import SCOPES, Identity, parse_scopes, require_scope
from agentcore_serve.auth.keys import KeyStore, check_file_key, mask_keys
from agentcore_serve.refused import Refused
from guarded import Clock

FILE_KEY = "x" * 40


@asynccontextmanager
async def open_keys(
    folder: Path, *, clock: Clock | None = None, file_key: str | None = None
) -> AsyncGenerator[KeyStore]:
    async with open_auth_database(str(folder / "store/serve.sqlite")) as database:
        key = None if file_key is None else SecretStr(file_key)
        yield KeyStore(database, file_key=key, clock=clock or Clock())


async def test_a_key_has_256_random_bits_and_nothing_keeps_them(tmp_path: Path) -> None:
    async with open_keys(tmp_path) as keys:
        record, secret = await keys.add("ci", owner="ada", scopes=["read", "run"])
        _, other = await keys.add("ci")
        key = secret.get_secret_value()
        assert re.fullmatch(r"ac_[0-9a-f]{12}_[0-9a-f]{64}", key)
        assert key.startswith(f"{record.id}_")
        assert key != other.get_secret_value()
        assert await keys.verify(key) == (Identity(record.id, "ada", frozenset({"read", "run"})), *_digest(key))
    for path in (tmp_path / "store").iterdir():
        assert key.rpartition("_")[2].encode() not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def _digest(key: str) -> tuple[bytes]:
    import hashlib  # noqa: PLC0415 here only: the test says by itself what is kept

    return (hashlib.sha256(key.encode()).digest(),)


async def test_a_key_is_valid_until_it_is_revoked_or_expires_also_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    async with open_keys(tmp_path, clock=clock) as keys:
        gone, first = await keys.add("gone")
        _, second = await keys.add("short", expires=datetime.fromtimestamp(clock.now + 60, UTC))
        _, third = await keys.add("stays")
        assert await keys.revoke(gone.id)
        assert not await keys.revoke("ac_000000000000")
        assert await keys.verify(first.get_secret_value()) is None
        assert await keys.verify(second.get_secret_value()) is not None
        clock.now += 60
        assert await keys.verify(second.get_secret_value()) is None
    async with open_keys(tmp_path, clock=clock) as keys:
        assert await keys.verify(first.get_secret_value()) is None
        assert await keys.verify(third.get_secret_value()) is not None
        shown = {record.name: record for record in await keys.records()}
        assert shown["gone"].revoked is not None
        assert shown["short"].expires == datetime.fromtimestamp(clock.now, UTC)
        assert shown["stays"].last_used == datetime.fromtimestamp(clock.now, UTC)
        assert [record.name for record in await keys.records(owner="nobody")] == []


@pytest.mark.parametrize(
    "wrong", ["", "ac_", "ac_000000000000_" + "0" * 64, "\ud800", "é" * 90, FILE_KEY[:-1], "' OR 1=1 --"]
)
async def test_what_is_no_key_is_refused(tmp_path: Path, wrong: str) -> None:
    async with open_keys(tmp_path, file_key=FILE_KEY) as keys:
        await keys.add("one")
        assert await keys.verify(wrong) is None


async def test_a_key_with_the_id_of_another_is_refused(tmp_path: Path) -> None:
    async with open_keys(tmp_path) as keys:
        one, _ = await keys.add("one")
        _, other = await keys.add("other")
        assert await keys.verify(f"{one.id}_{other.get_secret_value().rpartition('_')[2]}") is None


async def test_the_key_of_a_file_may_do_everything(tmp_path: Path) -> None:
    async with open_keys(tmp_path, file_key=FILE_KEY) as keys:
        found = await keys.verify(FILE_KEY)
        assert found is not None
        assert found.identity == Identity("file", "default", frozenset(SCOPES))
        assert await keys.has_any()
    async with open_keys(tmp_path) as keys:
        assert await keys.verify(FILE_KEY) is None
        assert not await keys.has_any()


@pytest.mark.parametrize("text", ["", "x" * 31, "x" * 20 + " " + "y" * 20, "x" * 40 + "\n" + "y" * 40, "é" * 40])
def test_a_key_file_with_a_weak_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match="32 to 512 visible ASCII characters") as refused:
        check_file_key(text)
    assert not text or text not in str(refused.value)


def test_a_key_file_may_end_with_a_line_break() -> None:
    assert check_file_key("x" * 32 + "\n").get_secret_value() == "x" * 32


async def test_an_unknown_scope_a_blank_name_and_a_past_expiry_are_refused(tmp_path: Path) -> None:
    async with open_keys(tmp_path) as keys:
        with pytest.raises(ValueError, match=r"Unknown scopes: root\. There are: read, run"):
            await keys.add("a", scopes=["read", "root"])
        with pytest.raises(ValueError, match="Unknown scopes: none"):
            parse_scopes([])
        with pytest.raises(ValueError, match="name of a key has 1 to 200 printable"):
            await keys.add("  ")
        with pytest.raises(ValueError, match="owner of a key"):
            await keys.add("a", owner="x\x1b[2J")
        with pytest.raises(ValueError, match="expired already"):
            await keys.add("a", expires=datetime(2020, 1, 1, tzinfo=UTC))
        assert await keys.records() == []


def test_no_scope_implies_another() -> None:
    require_scope(Identity("k", "o", frozenset({"admin"})), "admin")
    with pytest.raises(Refused, match="lacks the scope 'read'") as refused:
        require_scope(Identity("k", "o", frozenset({"admin"})), "read")
    assert refused.value.status == 403


async def test_two_processes_worth_of_connections_use_one_database(tmp_path: Path) -> None:
    async with open_keys(tmp_path) as server, open_keys(tmp_path) as command:
        record, secret = await command.add("new")
        assert await server.verify(secret.get_secret_value()) is not None
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(server.add, "a")
                tasks.start_soon(command.add, "b")
        await command.revoke(record.id)
        assert await server.verify(secret.get_secret_value()) is None
        assert len(await server.records()) == 41


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store/serve.sqlite").write_text("not a database, and long enough to be looked at as one" * 20)
    with pytest.raises(DatabaseDamaged):
        async with open_keys(tmp_path):
            pass


def test_no_representation_shows_a_key() -> None:
    key = "ac_0123456789ab_" + "f" * 64
    for text in (f"/x/{key}/y", f"ticket=act_{'e' * 64}", f"acs_{'d' * 64};", f"acp_{'c' * 64}"):
        masked = mask_keys(text)
        assert "***" in masked
        assert not re.search(r"([cdef])\1{20}", masked)
    assert mask_keys(f"/x/{key}/y") == "/x/ac_0123456789ab_***/y"
