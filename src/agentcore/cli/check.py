"""`agentcore log verify` and `agentcore log repair`: whether a log is what was written, and what can be had of one that is not."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from agentcore.cli.amounts import count
from agentcore.cli.console import BAD, DIM, GOOD, STRONG, WARN, make_console, say
from agentcore.cli.failures import UsageError
from agentcore.cli.home import find_conversation, open_store
from agentcore.cli.settings import Settings
from agentcore.errors import LogDamaged
from agentcore.record import RepairReport, Store, read_log

__all__ = ["repair_log", "verify_log"]

_SOUND, _DAMAGED, _UNFINISHED = 0, 1, 3


@runtime_checkable
class _KeepsLines(Protocol):
    """A store whose logs are lines that a disk may damage: `FileStore`."""

    async def verify(self, conversation_id: str) -> tuple[int, str | None]: ...

    async def repair(self, conversation_id: str) -> RepairReport: ...


async def verify_log(given: str | None, settings: Settings) -> int:
    """Say whether a log is sound, and give the exit code: 0 it is, 1 it is damaged, 3 it has an unfinished end."""
    store = open_store(settings)
    conversation_id = await find_conversation(store, settings, given)
    console = make_console()
    say(console, conversation_id, STRONG)
    try:
        events, unfinished = await _lines_of(store).verify(conversation_id)
        await read_log(store, conversation_id)  # what the lines say is events, and the blobs that they name are there
    except LogDamaged as damage:
        say(console, f"damaged: line {damage.line}: {damage.reason}", BAD)
        say(console, f"{damage.sound} The file is {damage.path}", DIM)
        if damage.line > 1:
            say(console, f"To keep the sound part: {settings.command(f'log repair {conversation_id}')}")
        return _DAMAGED
    if unfinished is not None:
        say(console, f"sound, {count(events, 'event')}, with an unfinished end: {unfinished}", WARN)
        say(
            console,
            "It is cut off when the conversation is gone on with. What might be more than the rest of a write is kept beside the log.",
            DIM,
        )
        return _UNFINISHED
    say(console, f"sound, {count(events, 'event')}", GOOD)
    return _SOUND


async def repair_log(given: str, settings: Settings) -> int:
    """Cut a damaged log back to its sound beginning, and give the exit code."""
    store = open_store(settings)
    conversation_id = await find_conversation(store, settings, given)
    report = await _lines_of(store).repair(conversation_id)
    console = make_console()
    say(console, conversation_id, STRONG)
    if report.backup is None:
        say(console, f"sound, {count(report.kept, 'event')}; nothing was changed", GOOD)
        return 0
    say(
        console,
        f"{count(report.kept, 'event')} kept, {count(report.cut_lines, 'line')} cut off ({report.reason})",
        WARN,
    )
    say(console, f"The log as it was: {report.backup}")
    if not report.kept:
        say(console, "Nothing is left that could be gone on with.", DIM)
        return 0
    say(console, f"To go on from the last event that was kept: {settings.command(f'resume {conversation_id}')}", DIM)
    return 0


def _lines_of(store: Store) -> _KeepsLines:
    if not isinstance(store, _KeepsLines):
        raise UsageError(f"The logs in {store.location} are not files: only files can be verified and repaired here.")
    return store
