"""`agentcore log export`: a log as JSON Lines for programs, or as Markdown for people."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal

from anyio.to_thread import run_sync

from agentcore.cli.console import make_console, print_line
from agentcore.cli.conversations import find_conversation, folder_of, open_store, title_of
from agentcore.cli.events import EventRenderer
from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings
from agentcore.cli.text import count, one_line, printable, spent
from agentcore.display import DiffBlock, code_span
from agentcore.events import ActionEvent, AnswerEvent, Condensation, Event, MessageEvent, ObservationEvent
from agentcore.record import ConversationState, read_log

ExportFormat = Literal["jsonl", "markdown"]


async def export_log(
    given: str | None, settings: Settings, *, form: ExportFormat | None, output: str | None, force: bool
) -> int:
    """Export a log and return the exit code."""
    store = open_store(settings)
    state = await read_log(store, await find_conversation(store, settings, given))
    if form is None:
        form = "markdown" if output is not None and output.endswith((".md", ".markdown")) else "jsonl"
    lines = _markdown(state) if form == "markdown" else (event.model_dump_json() for event in state.events)
    await run_sync(_write, lines, output, force)
    if output is not None:
        exported = f"Exported {count(state.head, 'event')} of {state.conversation_id} to {output}"
        print_line(make_console(stderr=True), exported)
    return 0


def _write(lines: Iterable[str], output: str | None, force: bool) -> None:
    encoded = (f"{line}\n".encode(errors="backslashreplace") for line in lines)
    if output is None or output == "-":
        sys.stdout.buffer.writelines(encoded)
        return
    if not force and os.path.exists(output):
        raise UsageError(f"{output!r} already exists; use --force to replace it.")
    # Written beside the target and then renamed, so that a reader never sees half of it.
    unfinished = f"{output}.part"
    try:
        with open(unfinished, "wb") as file:
            file.writelines(encoded)
        os.replace(unfinished, output)
    except OSError as error:
        with suppress(OSError):
            os.unlink(unfinished)
        # Name the target, not the temporary file beside it.
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            folder = os.path.dirname(os.path.abspath(output))
            raise UsageError(f"Cannot write {output!r}: no such folder: {folder!r}.") from None
        raise UsageError(f"Cannot write {output!r}: {error.strerror}.") from None


def _markdown(state: ConversationState) -> Iterator[str]:
    yield f"# {title_of(state) or state.conversation_id}"
    yield ""
    where = folder_of(state)
    status = f"{str(state.status).replace('_', ' ')}, {count(state.head, 'event')}, {spent(state.usage)}"
    yield f"Conversation `{state.conversation_id}`{f' in {code_span(one_line(where))}' if where else ''}: {status}."
    renderer = EventRenderer(root=where, whole=True)
    for event in state.events:
        yield from _section(event, renderer)


def _section(event: Event, renderer: EventRenderer) -> Iterator[str]:
    rendered = renderer.render(event)
    body = [line.plain for line in rendered.body]
    thought = [line.plain for line in rendered.thought]
    when = f"{event.timestamp:%Y-%m-%d %H:%M:%S} UTC"
    match event:
        case MessageEvent():
            yield from ("", f"## {rendered.label.plain.capitalize()}", "", f"*seq {event.seq}, {when}*", "")
            yield printable(event.text)
        case ActionEvent():
            if thought:
                yield from ("", "## Agent", "", f"*seq {event.seq}, {when}*", "", *thought)
            yield from ("", f"### {code_span(rendered.line.plain)}", "", f"*seq {event.seq}, {when}*")
            yield from _fenced(body, "diff" if _changes(event) else "text")
        case _ if isinstance(event, AnswerEvent):
            what = {"rejected": "rejection"}.get(rendered.label.plain, rendered.label.plain)
            about = f" of {code_span(rendered.about)}" if rendered.about else ""
            yield from ("", f"*seq {event.seq}, {what}{about}:* {rendered.line.plain}")
            changes = _changes(event) if isinstance(event, ObservationEvent) else []
            yield from _fenced(changes, "diff") if changes else _fenced(body)
        case Condensation():
            yield from ("", f"*seq {event.seq}, {when}, history {rendered.line.plain}*")
            yield from _fenced(body)
        case _:
            pass  # other bookkeeping is only in the JSON Lines


def _changes(event: ActionEvent | ObservationEvent) -> list[str]:
    """Return the lines of the changes of files that the event's tool shows."""
    diffs = (block.diff for block in event.display if isinstance(block, DiffBlock))
    return [line for diff in diffs for line in printable(diff.removesuffix("\n")).split("\n")]


def _fenced(lines: list[str], language: str = "text") -> Iterator[str]:
    """Return lines as a code block whose fence is longer than any in them; nothing for no lines."""
    if not lines:
        return
    longest = max((len(run) for line in lines for run in re.findall("`{3,}", line)), default=2)
    fence = "`" * (longest + 1)
    yield from ("", f"{fence}{language}", *lines, fence)
