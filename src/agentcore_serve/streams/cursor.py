"""Where a watcher begins: the cursor of a request, checked against the log. What a cursor is says `agentcore.wire`."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from agentcore.record import ConversationState
from agentcore.wire import Cursor
from agentcore_serve.refused import Refused

_FLAGS = {"1": True, "true": True, "0": False, "false": False}


def birth_of(state: ConversationState) -> str | None:
    """Return the id of the log's first event; None where the log is empty."""
    return state.events[0].id if state.head else None


def read_cursor(connection: HTTPConnection) -> Cursor:
    """Read where a stream begins: `Last-Event-ID`, else `?after=` with or without `&birth=`, else the log's start.

    Raises:
        Refused: It is not a cursor (422).
    """
    query = connection.query_params
    # A browser that reconnects repeats the address of its first request, and says in the header how far it came.
    last, after = connection.headers.get("last-event-id"), query.get("after")
    try:
        cursor = Cursor.parse(last or after or "0")
    except ValueError as error:
        where = ("header", "Last-Event-ID") if last else ("query", "after")
        raise Refused(422, "invalid_request", str(error), errors=[{"loc": where, "msg": "not a cursor"}]) from None
    birth = query.get("birth")
    return cursor if cursor.birth is not None or birth is None else Cursor(cursor.seq, birth)


def check_cursor(cursor: Cursor, state: ConversationState) -> int:
    """Return the seq to go on behind.

    Raises:
        Refused: It is a place in another log, or behind the end of this one (410).
    """
    birth = birth_of(state)
    if not cursor.fits(birth, state.head):
        if cursor.birth not in (None, birth):
            what = "The cursor is of another log: the conversation was deleted and begun again."
        else:
            what = f"The cursor is past the head of the log, which has {state.head} events."
        raise Refused(410, "cursor_gone", f"{what} Read it from the start.")
    return cursor.seq


def read_flag(connection: HTTPConnection, name: str, *, default: bool) -> bool:
    """Read a flag of the query: 1, true, 0 or false.

    Raises:
        Refused: It is something else (422).
    """
    text = connection.query_params.get(name)
    if text is None:
        return default
    if text not in _FLAGS:
        raise Refused(
            422, "invalid_request", f"?{name}= is 1 or 0.", errors=[{"loc": ("query", name), "msg": "not 1 or 0"}]
        )
    return _FLAGS[text]
