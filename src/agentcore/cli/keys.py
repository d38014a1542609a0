"""`agentcore keys`: makes, lists and revokes the keys of a server, in the database beside its conversations."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from agentcore.cli.console import BAD, DIM, NAME, make_console, print_line, styled, write_json
from agentcore.cli.failures import UsageError
from agentcore.cli.settings import read_settings
from agentcore.cli.text import one_line
from agentcore_serve.auth.audit import AUDIT_LOG, AuditLog
from agentcore_serve.auth.database import DATABASE, DatabaseDamaged, open_auth_database
from agentcore_serve.auth.identity import SCOPES
from agentcore_serve.auth.keys import KeyRecord, KeyStore
from agentcore_serve.settings import ServeSettings, SettingsError

_SPAN: Final = re.compile(r"([1-9]\d{0,5})([hd])")


async def add_key(name: str, *, owner: str, scopes: str, expires: str | None, store: str | None, json: bool) -> int:
    """Make a key and print it, and return the exit code."""
    wanted = SCOPES if scopes.strip() == "all" else scopes.split(",")
    until = None if expires is None else parse_expiry(expires, datetime.now(UTC))
    async with _opened(store) as (keys, audit):
        try:
            record, secret = await keys.add(name, owner=owner, scopes=wanted, expires=until)
        except ValueError as error:
            raise UsageError(str(error)) from None
        await _record(audit, "keys add", record.id)
    if json:
        write_json({**_as_json(record), "key": secret.get_secret_value()})
        return 0
    print_line(make_console(), secret.get_secret_value())
    until_when = "" if until is None else f", until {_minute(until)}"
    print_line(
        make_console(stderr=True),
        f"Key {record.id} of {one_line(record.owner)}, for {_list_scopes(record)}{until_when}. It is shown this once.",
        DIM,
    )
    return 0


async def list_keys(*, store: str | None, json: bool) -> int:
    """Print the keys, and return the exit code."""
    async with _opened(store) as (keys, _):
        records = await keys.records()
    if json:
        for record in records:
            write_json(_as_json(record))
        return 0
    console = make_console()
    if not records:
        print_line(console, "No keys. Make one: agentcore keys add NAME")
    now = datetime.now(UTC)
    for record in records:
        line = styled(record.id, NAME).append(f"  {one_line(record.name)}  ")
        line.append(f"{one_line(record.owner)}  {_list_scopes(record)}  ", DIM)
        line.append(f"{'never used' if record.last_used is None else f'used {_minute(record.last_used)}'}", DIM)
        if record.revoked is not None:
            line.append(f"  revoked {_minute(record.revoked)}", BAD)
        elif record.expires is not None:
            is_over = record.expires <= now
            line.append(f"  {'expired' if is_over else 'until'} {_minute(record.expires)}", BAD if is_over else DIM)
        print_line(console, line)
    return 0


async def revoke_key(key_id: str, *, store: str | None) -> int:
    """Revoke a key, and return the exit code."""
    async with _opened(store) as (keys, audit):
        if not await keys.revoke(key_id):
            raise UsageError("There is no key of that id. List them: agentcore keys list")
        await _record(audit, "keys revoke", key_id)
    print_line(make_console(), f"Revoked {key_id}.")
    return 0


async def print_link(url: str) -> int:
    """Print a link that logs a browser in at a server that runs, and return the exit code."""
    from agentcore.remote.client import ServerClient  # noqa: PLC0415 the other commands need no client

    try:
        async with ServerClient(url, reconnect_seconds=0) as client:
            answer = await client.request("POST", "page-codes")
            link = f"{client.url}/enter?code={answer.json()['ticket']}"
    except ValueError as error:
        raise UsageError(str(error)) from None
    print_line(make_console(), link)
    print_line(make_console(stderr=True), "It works once, for a minute.", DIM)
    return 0


def parse_expiry(text: str, now: datetime) -> datetime:
    """Return when a key ends: after hours or days, or at the beginning of a day (UTC).

    Raises:
        UsageError: It is neither.
    """
    span = _SPAN.fullmatch(text.strip())
    try:
        if span is not None:
            return now + timedelta(**{{"h": "hours", "d": "days"}[span[2]]: int(span[1])})
        moment = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise UsageError(f"--expires is 12h, 30d, or a date, as in 2027-01-31; not {text!r}.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@asynccontextmanager
async def _opened(store: str | None) -> AsyncGenerator[tuple[KeyStore, AuditLog]]:
    try:
        folder = ServeSettings.from_environment(store=store).store
    except SettingsError as error:
        raise UsageError(str(error)) from None
    path = os.path.join(folder, DATABASE)
    try:
        async with open_auth_database(path) as database:
            yield KeyStore(database), AuditLog(os.path.join(folder, AUDIT_LOG))
    except DatabaseDamaged as error:
        raise UsageError(str(error)) from error
    except sqlite3.DatabaseError as error:
        raise UsageError(f"{path} cannot be used: {error}.") from error


async def _record(audit: AuditLog, action: str, key_id: str) -> None:
    await audit.record(action, key_id, key=None, user=read_settings().person)


def _as_json(record: KeyRecord) -> dict[str, object]:
    moments = {name: getattr(record, name) for name in ("created", "last_used", "expires", "revoked")}
    return {
        "id": record.id,
        "name": record.name,
        "owner": record.owner,
        "scopes": _sorted_scopes(record),
        **{name: None if moment is None else moment.isoformat() for name, moment in moments.items()},
    }


def _sorted_scopes(record: KeyRecord) -> list[str]:
    return [scope for scope in SCOPES if scope in record.scopes]


def _list_scopes(record: KeyRecord) -> str:
    return "everything" if len(record.scopes) == len(SCOPES) else ", ".join(_sorted_scopes(record))


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
