"""`agentcore log show`: what happened, to read, also while it happens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Protocol, runtime_checkable

import anyio
from rich.console import Console
from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, STRONG, WARN, Glyphs, fold, make_console, say, say_below, styled
from agentcore.cli.conversations import find_conversation, folder_of, is_at_work, open_store
from agentcore.cli.events import Teller, Told
from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings
from agentcore.cli.text import count, one_line, spent
from agentcore.errors import LogDamaged
from agentcore.events import KNOWN_KINDS, ActionStarted, ConversationStatus, Event
from agentcore.record import ConversationState, LogReader, RepairReport, Store, read_log

_FOLLOW_SECONDS = 0.25
_LABEL = 8
_WHOLE = frozenset({"call", "asks"})
"""The labels of what may be copied, which is never folded."""
_FIRST, _LAST = 12, 4
"""How many lines of something long are shown unless all of it is asked for."""


async def show_log(
    given: str | None, settings: Settings, *, after: int, kinds: Sequence[str], whole: bool, follow: bool
) -> int:
    """Print a log, and give the exit code."""
    store = open_store(settings)
    conversation_id = await find_conversation(store, settings, given)
    reader = await LogReader.open(store, conversation_id)
    events = await reader.read()
    state = reader.state
    _check_kinds(kinds, state)
    console = make_console()
    page = _Page(console, Teller(root=folder_of(state), whole=whole), after, frozenset(kinds))
    if not after and not kinds:
        _say_head(console, state)
    page.show(events)
    if follow:
        await _follow(reader, page)
    elif not after and not kinds:
        _say_end(console, state, settings, at_work=await is_at_work(store, state))
    return 0


class _Page:
    """Prints the events that were asked for."""

    def __init__(self, console: Console, teller: Teller, after: int, kinds: frozenset[str]) -> None:
        self._console = console
        self._teller = teller
        self._after = after
        self._kinds = kinds
        self._day: date | None = None

    def show(self, events: Sequence[Event]) -> None:
        """Print the next events."""
        for event in events:
            told = self._teller.tell(event)  # also of those that are not printed: later ones are about them
            if event.seq > self._after and self._wants(event):
                self._print(event, told)

    def _wants(self, event: Event) -> bool:
        if self._kinds:
            return event.kind in self._kinds
        # When a call started is seldom a question, and there are as many of these as calls.
        return self._teller.whole or not isinstance(event, ActionStarted)

    def _print(self, event: Event, told: Told) -> None:
        when = event.timestamp.astimezone()
        if when.date() != self._day:
            self._day = when.date()
            say(self._console, f"{self._day}", DIM)
        where = f"{event.seq:>5} {when:%H:%M:%S} "
        if told.words:
            self._entry(where, Text("agent", STRONG), Text(""), told.words)
        self._entry(where, told.label, told.said, told.body)

    def _entry(self, where: str, label: Text, said: Text, below: Sequence[Text]) -> None:
        """Print what something is, what is said of it, and what stands below."""
        body = list(below)
        line = styled(where, DIM).append_text(label).append(" " * (_LABEL - len(label))).append(" ")
        if not said.plain and body:
            said = body.pop(0)
        if said.plain and label.plain not in _WHOLE and not self._fits(line, said):
            first = fold(said.plain, max(self._console.width - line.cell_len, 8))[0]
            body.insert(0, Text(said.plain[len(first) :].removeprefix(" "), said.style))
            said = Text(first, said.style)
        say(self._console, line.append_text(said))
        if not self._teller.whole and len(body) > _FIRST + _LAST + 1:
            left_out = len(body) - _FIRST - _LAST
            more = Text(f"{Glyphs(self._console.encoding).more} {left_out} more lines (--all)", DIM)
            body = [*body[:_FIRST], more, *body[-_LAST:]]
        for each in body:
            self._below(each)

    def _fits(self, line: Text, rest: Text) -> bool:
        return not self._console.is_terminal or line.cell_len + rest.cell_len <= self._console.width

    def _below(self, line: Text) -> None:
        say_below(self._console, f"{'':5}{Glyphs(self._console.encoding).bar} ", line)


def _say_head(console: Console, state: ConversationState) -> None:
    where = folder_of(state)
    say(console, styled(state.conversation_id, STRONG).append(f" in {one_line(where)}" if where else "", DIM))
    if state.title:
        say(console, one_line(state.title))


def _say_end(console: Console, state: ConversationState, settings: Settings, *, at_work: bool) -> None:
    status = "waits for your yes or no" if state.pending else str(state.status).replace("_", " ")
    if state.status is ConversationStatus.RUNNING and not at_work:
        status = "cut off: who wrote it is gone"
    say(console, styled(status, STRONG).append(f", {spent(state.usage)}" if state.usage.requests else "", DIM))
    if state.pending:
        say(console, f"decide: {settings.command(f'resume {state.conversation_id}')}")


def _check_kinds(kinds: Sequence[str], state: ConversationState) -> None:
    known = KNOWN_KINDS | {event.kind for event in state.events}
    for kind in kinds:
        if kind not in known:
            raise UsageError(f"There is no kind of event {kind!r}. There are: {', '.join(sorted(known))}.")


async def _follow(reader: LogReader, page: _Page) -> None:
    """Print what another process writes, until somebody ends it."""
    while True:
        await anyio.sleep(_FOLLOW_SECONDS)
        # A log tells nobody that it grew; where it did not, reading on costs next to nothing.
        page.show(await reader.read())


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
