"""`agentcore conversations`, and finding the conversation that an argument refers to."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
from rich.console import Console
from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, STRONG, WARN, make_console, print_line, styled, write_json
from agentcore.cli.failures import UsageError
from agentcore.cli.prompt import ask, open_keyboard
from agentcore.cli.settings import Settings
from agentcore.cli.text import age, cost, count, one_line
from agentcore.conversation import Host
from agentcore.errors import ConversationNotFound, StoreError
from agentcore.events import ConversationStatus, MessageEvent
from agentcore.record import ConversationState, FileStore, LogInfo, Store, read_log

_LISTED = 10
_MADE_HERE = re.compile(r"\d{8}-\d{6}-[0-9a-f]{10}")
_SHORT = len("20261121-093000")


def open_store(settings: Settings) -> FileStore:
    """Return the store in the settings' folder."""
    return FileStore(settings.conversations)


async def find_conversation(store: Store, settings: Settings, given: str | None, *, or_message: str = "") -> str:
    """Return the id with this prefix, or without a prefix the id of the last changed conversation.

    Args:
        store: The store to search.
        settings: The settings, for suggested commands.
        given: The prefix.
        or_message: The message that `given` may have begun: the error suggests how to send it.

    Raises:
        UsageError: No conversation matches, or several do.
    """
    if given is not None and await has_log(store, given):
        return given
    infos = await store.list()
    if not infos:
        raise UsageError(_none_yet(store, settings))
    newest = max(infos, key=lambda info: info.modified).conversation_id
    if given is None:
        return newest
    found = [info.conversation_id for info in infos if info.conversation_id.startswith(given)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = "".join(f"\n  {each}" for each in found[:_LISTED])
        more = f"\n  and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        raise UsageError(f"{given!r} matches {len(found)} conversations; type more of the id:{listed}{more}")
    raise UsageError(
        f"No conversation in {store.location} matches {given!r}. "
        f"List them: {settings.command('conversations')}"
        + (
            f"\nSend it as a message to the last one: {settings.command(f'resume {newest} {shlex.quote(or_message)}')}"
            if or_message
            else ""
        )
    )


async def shorten_id(store: Store, conversation_id: str) -> str:
    """Return the beginning of an id that is enough to find it: its date and time, unless another one has the same."""
    if _MADE_HERE.fullmatch(conversation_id) is None:
        return conversation_id
    return _shorten(conversation_id, _count_beginnings(await store.list()))


def _count_beginnings(infos: Sequence[LogInfo]) -> Counter[str]:
    return Counter(info.conversation_id[:_SHORT] for info in infos)


def _shorten(conversation_id: str, beginnings: Counter[str]) -> str:
    short = conversation_id[:_SHORT]
    return short if _MADE_HERE.fullmatch(conversation_id) and beginnings[short] <= 1 else conversation_id


def _none_yet(store: Store, settings: Settings) -> str:
    return f"No conversations in {store.location} yet. Start one: {settings.command('run')} 'your task'"


def folder_of(state: ConversationState) -> str | None:
    """Return the local folder that a conversation works in."""
    opened = state.workspace
    root = opened.spec.get("root") if opened is not None and opened.workspace == "local" else None
    return root if isinstance(root, str) else None


def find_mount(state: ConversationState) -> str | None:
    """Return the folder of this machine that a conversation's sandbox shows; None if it shows none."""
    spec = {} if state.workspace is None else state.workspace.spec
    mount = spec.get("mount") or spec.get("path")
    return mount if isinstance(mount, str) else None


def describe_box(state: ConversationState) -> str:
    """Describe the sandbox that a conversation works in."""
    opened = state.workspace
    spec = {} if opened is None else opened.spec
    where = spec.get("mount") or spec.get("path") or "a box"
    return f"{where} ({'' if opened is None else opened.workspace})"


async def find_folder(state: ConversationState, settings: Settings, given: str | None, *, command: str) -> str:
    """Return the folder to continue in: the given one, or that of the log.

    Args:
        state: The state of the conversation.
        settings: The settings, for the suggested command.
        given: The value of --workspace.
        command: The command that continues, for the suggestion.

    Raises:
        UsageError: The log has none, or it is gone.
    """
    where = given or folder_of(state)
    if where is None:
        raise UsageError(f"The log of {state.conversation_id!r} has no local folder. Name one with --workspace.")
    if given is None and not await anyio.Path(where).is_dir():
        elsewhere = settings.command(f"{command} {state.conversation_id} --workspace")
        raise UsageError(f"No such folder: {where!r}. Name the folder to continue in: {elsewhere} FOLDER")
    return where


def describe_standing(state: ConversationState) -> str:
    """Describe how a conversation was left whose lock is held."""
    if state.status is ConversationStatus.RUNNING:
        return f"cut off after {count(state.head, 'event')}"  # the process that ran it is gone
    return f"{str(state.status).replace('_', ' ')} after {count(state.head, 'event')}"


def title_of(state: ConversationState) -> str:
    """Return the title, or the start of the first message."""
    messages = (event.text for event in state.events if isinstance(event, MessageEvent) and event.source == "user")
    return one_line(state.title or " ".join(next(messages, "").split())[:_TITLE])


async def is_running(store: Store, state: ConversationState) -> bool:
    """Return whether a process is writing the log now. A log that says "running" may belong to a process that died."""
    if state.status is not ConversationStatus.RUNNING:
        return False
    try:
        return await store.holder(state.conversation_id) is not None
    except StoreError:
        return False  # its lock cannot be read, or it was deleted just now


async def has_log(store: Store, conversation_id: str) -> bool:
    """Return whether a log with exactly this id exists, readable or not."""
    try:
        await store.holder(conversation_id)
    except (ConversationNotFound, ValueError):
        return False  # no such log, or not a valid id
    except StoreError:
        return True
    return True


_STYLES = {
    "finished": GOOD,
    "error": BAD,
    "stuck": BAD,
    "waiting": WARN,
    "paused": WARN,
    "running": WARN,
    "cut off": WARN,
    "damaged": BAD,
}
_HEADINGS = ("id", "status", "events", "cost", "changed")
_TITLE = 200
_LEAST_TITLE = 20


@dataclass(frozen=True, slots=True)
class _Row:
    info: LogInfo
    state: ConversationState | None
    """None if the log cannot be read."""
    problem: str | None = None
    at_work: bool = False
    """Return whether a process is writing the log."""

    @property
    def status(self) -> str:
        if self.state is None:
            return "damaged"
        if self.cut_off:
            return "cut off"
        return "waiting" if self.state.pending else str(self.state.status)

    @property
    def cut_off(self) -> bool:
        """True if its process died during a run."""
        return self.state is not None and self.state.status is ConversationStatus.RUNNING and not self.at_work

    @property
    def title(self) -> str:
        if self.state is None:
            return self.problem or ""
        return title_of(self.state)


async def list_conversations(settings: Settings, *, limit: int, json: bool) -> int:
    """Print the list and return the exit code."""
    store = open_store(settings)
    infos = await store.list()
    rows = [await _read(store, info) for info in infos[: limit or None]]
    if json:
        for row in rows:
            write_json(_as_json(row))
        return 0
    console = make_console()
    if not rows:
        print_line(console, _none_yet(store, settings))
        return 0
    _print(console, rows, _count_beginnings(infos))
    if len(infos) > len(rows):
        print_line(
            console, f"and {len(infos) - len(rows)} older; list all: {settings.command('conversations --limit 0')}", DIM
        )
    return 0


async def delete_conversation(given: str, settings: Settings, *, yes: bool) -> int:
    """Delete a conversation, after a question unless `yes`, and return the exit code."""
    store = open_store(settings)
    conversation_id = await find_conversation(store, settings, given)
    console = make_console()
    if not yes:
        (info,) = [each for each in await store.list() if each.conversation_id == conversation_id]
        row = await _read(store, info)
        with open_keyboard(console) as keyboard:
            if keyboard is None:
                raise UsageError(
                    f"Deleting {conversation_id} needs a confirmation, and there is no terminal to ask on. Pass --yes."
                )
            print_line(console, styled(f"{conversation_id}  ", STRONG).append(f"{row.status}  {row.title}"))
            answer = await ask(console, keyboard, "Delete this conversation for good? [y/N] ")
        if (answer or "").strip().lower() not in ("y", "yes"):
            print_line(console, "Nothing was deleted.")
            return 1
    async with Host() as host:
        await host.delete(conversation_id, store)
    print_line(console, f"deleted {conversation_id}")
    return 0


async def _read(store: Store, info: LogInfo) -> _Row:
    try:
        state = await read_log(store, info.conversation_id)
        return _Row(info, state, at_work=await is_running(store, state))
    except StoreError as error:
        return _Row(info, None, str(error))


def _print(console: Console, rows: Sequence[_Row], beginnings: Counter[str]) -> None:
    """Print a table whose last column, the task, gets the remaining width.

    On a terminal an id is as short as it can be used. On a narrow one each id has its own line, and its status and task
    are below it.
    """
    cells = [
        (
            _shorten(row.info.conversation_id, beginnings) if console.is_terminal else row.info.conversation_id,
            row.status,
            "" if row.state is None else f"{row.state.head:,}",
            "" if row.state is None else cost(row.state.usage).replace("cost unknown", "?"),
            age(row.info.modified),
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *cells, strict=True)]
    narrow = console.is_terminal and console.width < sum(widths) + 2 * len(widths) + _LEAST_TITLE
    if not narrow:
        heading = [name.ljust(width) for name, width in zip(_HEADINGS, widths, strict=True)]
        print_line(console, "  ".join([*heading, "task"]), DIM)
    for row, (id_, status, *rest) in zip(rows, cells, strict=True):
        line = Text("  " if narrow else f"{id_:<{widths[0]}}  ")
        line.append(status if narrow else f"{status:<{widths[1]}}", _STYLES.get(row.status, ""))
        if narrow:
            print_line(console, id_)
        else:
            line.append("".join(f"  {cell:>{width}}" for cell, width in zip(rest, widths[2:], strict=True)))
        line.append(f"  {row.title}")
        if console.is_terminal:
            line.truncate(console.width, overflow="ellipsis")
        print_line(console, line)


def _as_json(row: _Row) -> dict[str, object]:
    state = row.state
    known: dict[str, object] = {
        "id": row.info.conversation_id,
        "status": "damaged" if state is None else "cut_off" if row.cut_off else str(state.status),
        "title": row.title,
        "created": row.info.created.isoformat(),
        "modified": row.info.modified.isoformat(),
    }
    if state is None:
        return {**known, "problem": row.problem}
    usage = state.usage
    return {
        **known,
        "events": state.head,
        "pending": len(state.pending),
        "workspace": folder_of(state),
        "tokens": usage.total_tokens,
        "cost": None if usage.cost is None else str(usage.cost),
    }
