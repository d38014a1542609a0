"""`agentcore log show`, `agentcore log verify` and `agentcore log repair`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import anyio
from rich.console import Console
from rich.text import Text

from agentcore.cli.console import (
    BAD,
    DIM,
    GOOD,
    STRONG,
    WARN,
    Glyphs,
    make_console,
    print_below,
    print_line,
    print_text,
    styled,
)
from agentcore.cli.conversations import find_conversation, folder_of, is_running, open_store, shorten_id
from agentcore.cli.events import EventRenderer, RenderedEvent
from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings
from agentcore.cli.text import count, one_line, spent
from agentcore.errors import LogDamaged
from agentcore.events import KNOWN_KINDS, ActionStarted, ConversationStatus, Event
from agentcore.record import ConversationState, LogReader, read_log

_FOLLOW_SECONDS = 0.25
_LABEL = 8
_WHOLE = frozenset({"call", "asks"})
"""The labels of entries that are never wrapped, so that they can be copied."""
_FIRST, _LAST = 12, 4
"""The lines to show of a long entry, unless all of it is requested."""


async def show_log(
    given: str | None, settings: Settings, *, after: int, kinds: Sequence[str], whole: bool, follow: bool
) -> int:
    """Print a log and return the exit code."""
    store = open_store(settings)
    conversation_id = await find_conversation(store, settings, given)
    reader = await LogReader.open(store, conversation_id)
    events = await reader.read()
    state = reader.state
    _check_kinds(kinds, state)
    console = make_console()
    page = _Page(console, EventRenderer(root=folder_of(state), whole=whole), after, frozenset(kinds))
    if not after and not kinds:
        _print_head(console, state)
    page.show(events)
    if follow:
        await _follow(reader, page)
    elif not after and not kinds:
        hint = settings.command(f"resume {await shorten_id(store, conversation_id)}")
        _print_end(console, state, hint, at_work=await is_running(store, state))
    return 0


class _Page:
    """Prints the requested events."""

    def __init__(self, console: Console, renderer: EventRenderer, after: int, kinds: frozenset[str]) -> None:
        self._console = console
        self._renderer = renderer
        self._after = after
        self._kinds = kinds
        self._day: date | None = None

    def show(self, events: Sequence[Event]) -> None:
        """Print the next events."""
        for event in events:
            rendered = self._renderer.render(event)  # also if it is not printed: later events refer to it
            if event.seq > self._after and self._wants(event):
                self._print(event, rendered)

    def _wants(self, event: Event) -> bool:
        if self._kinds:
            return event.kind in self._kinds
        # The start of a call is rarely of interest, and there are as many of these as calls.
        return self._renderer.whole or not isinstance(event, ActionStarted)

    def _print(self, event: Event, rendered: RenderedEvent) -> None:
        when = event.timestamp.astimezone()
        if when.date() != self._day:
            self._day = when.date()
            print_line(self._console, f"{self._day}", DIM)
        where = f"{event.seq:>5} {when:%H:%M:%S} "
        if rendered.thought:
            self._entry(where, Text("agent", STRONG), Text(""), rendered.thought)
        self._entry(where, rendered.label, rendered.summary, rendered.body)

    def _entry(self, where: str, label: Text, summary: Text, below: Sequence[Text]) -> None:
        """Print an entry: its label, its line, and the lines below."""
        body = list(below)
        line = styled(where, DIM).append_text(label).append(" " * (_LABEL - len(label))).append(" ")
        if not summary.plain and body:
            summary = body.pop(0)
        if summary.plain and label.plain not in _WHOLE and not self._fits(line, summary):
            first = summary.wrap(self._console, max(self._console.width - line.cell_len, 8))[0].plain.rstrip()
            body.insert(0, Text(summary.plain[len(first) :].lstrip(" "), summary.style))
            summary = Text(first, summary.style)
        print_line(self._console, line.append_text(summary))
        if not self._renderer.whole and len(body) > _FIRST + _LAST + 1:
            left_out = len(body) - _FIRST - _LAST
            more = Text(f"{Glyphs(self._console.encoding).more} {left_out} more lines (--all)", DIM)
            body = [*body[:_FIRST], more, *body[-_LAST:]]
        for each in body:
            self._below(each)

    def _fits(self, line: Text, rest: Text) -> bool:
        return not self._console.is_terminal or line.cell_len + rest.cell_len <= self._console.width

    def _below(self, line: Text) -> None:
        print_below(self._console, f"{'':5}{Glyphs(self._console.encoding).bar} ", line)


def _print_head(console: Console, state: ConversationState) -> None:
    where = folder_of(state)
    print_line(console, styled(state.conversation_id, STRONG).append(f" in {one_line(where)}" if where else "", DIM))
    if state.title:
        print_line(console, one_line(state.title))


def _print_end(console: Console, state: ConversationState, resume: str, *, at_work: bool) -> None:
    questions_only = len(state.questions) == len(state.pending)
    waiting = "waiting for an answer" if questions_only else "waiting for approval"
    status = waiting if state.pending else str(state.status).replace("_", " ")
    if state.status is ConversationStatus.RUNNING and not at_work:
        status = "cut off: its process is gone"
    print_text(console, styled(status, STRONG).append(f", {spent(state.usage)}" if state.usage.requests else "", DIM))
    if state.pending:
        print_line(console, f"{'answer' if questions_only else 'decide'}: {resume}")


def _check_kinds(kinds: Sequence[str], state: ConversationState) -> None:
    known = KNOWN_KINDS | {event.kind for event in state.events}
    for kind in kinds:
        if kind not in known:
            raise UsageError(f"Unknown kind of event: {kind!r}. Known kinds: {', '.join(sorted(known))}.")


async def _follow(reader: LogReader, page: _Page) -> None:
    """Print what another process writes, until interrupted."""
    while True:
        await anyio.sleep(_FOLLOW_SECONDS)
        # Polling, because a log does not notify its readers; reading an unchanged log is cheap.
        page.show(await reader.read())


_SOUND, _DAMAGED, _UNFINISHED = 0, 1, 3


async def verify_log(given: str | None, settings: Settings) -> int:
    """Verify a log and return the exit code: 0 if it is intact, 1 if damaged, 3 if its end is incomplete."""
    store = open_store(settings)
    conversation_id = await find_conversation(store, settings, given)
    console = make_console()
    print_line(console, conversation_id, STRONG)
    try:
        events, unfinished = await store.verify(conversation_id)
        await read_log(store, conversation_id)  # checks that the lines are events and that their blobs exist
    except LogDamaged as damage:
        print_text(console, f"damaged: line {damage.line}: {damage.reason}", BAD)
        print_text(console, damage.sound, DIM)
        print_line(console, f"The file is {damage.path}", DIM)
        if damage.line > 1:
            print_line(console, f"Keep the intact part: {settings.command(f'log repair {conversation_id}')}")
        return _DAMAGED
    if unfinished is not None:
        print_text(console, f"intact, {count(events, 'event')}, with an incomplete end: {unfinished}", WARN)
        print_text(
            console,
            "The end is cut off when the conversation is resumed. If it may be more than an incomplete write, a copy is kept beside the log.",
            DIM,
        )
        return _UNFINISHED
    print_line(console, f"intact, {count(events, 'event')}", GOOD)
    return _SOUND


async def repair_log(given: str, settings: Settings) -> int:
    """Truncate a damaged log to its intact beginning and return the exit code."""
    store = open_store(settings)
    conversation_id = await find_conversation(store, settings, given)
    report = await store.repair(conversation_id)
    console = make_console()
    print_line(console, conversation_id, STRONG)
    if report.backup is None:
        print_line(console, f"intact, {count(report.kept, 'event')}; nothing was changed", GOOD)
        return 0
    print_text(
        console,
        f"{count(report.kept, 'event')} kept, {count(report.cut_lines, 'line')} cut off ({report.reason})",
        WARN,
    )
    print_line(console, f"Backup: {report.backup}")
    if not report.kept:
        print_line(console, "Nothing is left to resume.", DIM)
        return 0
    print_line(console, f"Resume from the last kept event: {settings.command(f'resume {conversation_id}')}", DIM)
    return 0
