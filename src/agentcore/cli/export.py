"""`agentcore log export`: a log for other programs (JSON Lines) or other people (Markdown)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Literal

from anyio.to_thread import run_sync

from agentcore.cli.amounts import spent
from agentcore.cli.console import make_console, say
from agentcore.cli.events import Teller
from agentcore.cli.failures import UsageError
from agentcore.cli.home import WORKSPACE_TAG, find_conversation, open_store
from agentcore.cli.printable import one_line
from agentcore.cli.settings import Settings
from agentcore.events import ActionEvent, AnswerEvent, Event, MessageEvent
from agentcore.record import ConversationState, read_log

__all__ = ["ExportFormat", "export_log"]

ExportFormat = Literal["jsonl", "markdown"]


async def export_log(
    given: str | None, settings: Settings, *, form: ExportFormat | None, output: str | None, force: bool
) -> int:
    """Write a log out, and give the exit code."""
    store = open_store(settings)
    state = await read_log(store, await find_conversation(store, settings, given))
    if form is None:
        form = "markdown" if output is not None and output.endswith((".md", ".markdown")) else "jsonl"
    lines = _markdown(state) if form == "markdown" else (event.model_dump_json() for event in state.events)
    await run_sync(_write, lines, output, force)
    if output is not None:
        say(make_console(stderr=True), f"{state.head} events of {state.conversation_id} are in {output}")
    return 0


def _write(lines: Iterable[str], output: str | None, force: bool) -> None:
    encoded = (f"{line}\n".encode(errors="backslashreplace") for line in lines)
    if output is None or output == "-":
        sys.stdout.buffer.writelines(encoded)
        return
    if not force and os.path.exists(output):
        raise UsageError(f"{output!r} is there already; --force replaces it.")
    # Beside it and then in its place: who reads meanwhile sees the old one or the new one, whole.
    unfinished = f"{output}.part"
    with open(unfinished, "wb") as file:
        file.writelines(encoded)
    os.replace(unfinished, output)


def _markdown(state: ConversationState) -> Iterator[str]:
    yield f"# {_title(state)}"
    yield ""
    where = state.tags.get(WORKSPACE_TAG)
    yield f"Conversation `{state.conversation_id}`" + (f" in `{one_line(where)}`" if where else "") + ": "
    yield f"{str(state.status).replace('_', ' ')}, {state.head} events, {spent(state.usage)}."
    teller = Teller(root=where, whole=True)
    for event in state.events:
        yield from _section(event, teller)


def _section(event: Event, teller: Teller) -> Iterator[str]:
    told = teller.tell(event)
    body = [line.plain for line in told.body]
    when = f"{event.timestamp:%Y-%m-%d %H:%M:%S} UTC"
    match event:
        case MessageEvent():
            yield from ("", f"## {told.label.plain.capitalize()}", "", f"*#{event.seq}, {when}*", "")
            yield event.text
        case ActionEvent():
            yield from ("", f"### {told.line.plain.splitlines()[0] if told.line.plain else event.tool_name}", "")
            yield from (f"*#{event.seq}, {when}*", "")
            yield from _fenced(body)
        case _ if isinstance(event, AnswerEvent):
            yield from ("", f"*#{event.seq}: {told.label.plain}, {told.line.plain}*", "")
            yield from _fenced(body)
        case _:
            pass  # bookkeeping: the JSON Lines have it


def _title(state: ConversationState) -> str:
    if state.title:
        return one_line(state.title)
    for event in state.events:
        if isinstance(event, MessageEvent) and event.source == "user":
            return one_line(event.text.split("\n")[0])
    return state.conversation_id


def _fenced(lines: list[str]) -> Iterator[str]:
    """Give lines as a block that nothing in them can end."""
    if not lines:
        return
    longest = max((len(run) for line in lines for run in re.findall("`{3,}", line)), default=2)
    fence = "`" * (longest + 1)
    yield from (f"{fence}text", *lines, fence)
