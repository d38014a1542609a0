"""`agentcore keys`: a key is shown once, listed without its secret, and revoked."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentcore.cli.failures import UsageError
from agentcore.cli.keys import parse_expiry

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


@pytest.fixture
def store(cli: Cli, tmp_path: Path) -> Path:
    cli.environment["AGENTCORE_SERVE_STORE"] = str(tmp_path / "served")
    return tmp_path / "served"


def test_add_prints_the_key_alone_and_says_beside_it_what_it_may_do(cli: Cli, store: Path) -> None:
    ended = cli.run("keys", "add", "ci \x1b[2J", "--scopes", "run,read")
    assert (ended.code, ended.out) == (2, "")
    ended = cli.run("keys", "add", "ci", "--scopes", "run, read", "--expires", "30d", "--owner", "ada")
    assert ended.code == 0
    (key,) = ended.out.splitlines()
    key_id, _, secret = key.rpartition("_")
    assert len(secret) == 64
    assert ended.err.startswith(f"Key {key_id} of ada, for read, run, until 20")
    assert ended.err.endswith("It is shown this once.\n")
    assert secret not in cli.run("keys", "list").out + cli.run("keys", "list", "--json").out
    assert all(secret.encode() not in path.read_bytes() for path in store.iterdir())


def test_list_and_revoke_know_keys_by_their_ids(cli: Cli, store: Path) -> None:
    assert cli.run("keys", "list").out == "No keys. Make one: agentcore keys add NAME\n"
    made = cli.run("keys", "add", "laptop", "--json").lines[0]
    assert made["key"].startswith(f"{made['id']}_")
    assert made["scopes"] == ["read", "run", "approve", "workspace", "agents", "admin"]
    assert cli.run("keys", "list").out == f"{made['id']}  laptop  default  everything  never used\n"
    assert cli.run("keys", "revoke", made["id"]).out == f"Revoked {made['id']}.\n"
    assert f"{made['id']}  laptop  default  everything  never used  revoked 20" in cli.run("keys", "list").out
    (listed,) = cli.run("keys", "list", "--json").lines
    assert "key" not in listed
    assert listed["revoked"] is not None
    refused = cli.run("keys", "revoke", made["key"])
    assert (refused.code, made["key"] in refused.err) == (2, False)
    assert "agentcore keys list" in refused.err
    audit = [json.loads(line) for line in (store / "audit.jsonl").read_text().splitlines()]
    assert [(line["action"], line["target"]) for line in audit] == [
        ("keys add", made["id"]),
        ("keys revoke", made["id"]),
    ]
    assert made["key"] not in (store / "audit.jsonl").read_text()


def test_what_cannot_be_is_refused_in_a_sentence(cli: Cli, store: Path) -> None:
    for arguments, sentence in (
        (("add", "x", "--scopes", "root"), "Unknown scopes: root. There are: read, run"),
        (("add", "x", "--expires", "soon"), "--expires is 12h, 30d, or a date"),
        (("add", "x", "--expires", "2020-01-01"), "expired already"),
        (("add", " "), "1 to 200 printable characters"),
    ):
        ended = cli.run("keys", *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert sentence in ended.err
    store.mkdir(exist_ok=True)
    (store / "serve.sqlite").unlink(missing_ok=True)
    (store / "serve.sqlite").write_text("no database at all " * 100)
    ended = cli.run("keys", "list")
    assert ended.code == 2
    assert "serve.sqlite cannot be used: file is not a database." in ended.err


def test_an_expiry_is_a_span_or_a_date() -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    assert parse_expiry("12h", now) == now + timedelta(hours=12)
    assert parse_expiry(" 30d", now) == now + timedelta(days=30)
    assert parse_expiry("2027-01-31", now) == datetime(2027, 1, 31, tzinfo=UTC)
    assert parse_expiry("2027-01-31T10:00+02:00", now) == datetime(2027, 1, 31, 8, tzinfo=UTC)
    for wrong in ("", "0d", "3y", "99999999d", "tomorrow"):
        with pytest.raises(UsageError):
            parse_expiry(wrong, now)
