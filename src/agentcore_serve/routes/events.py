"""The log of a conversation over HTTP: pages of events, the pieces that are kept beside it, and what it used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, cast

import anyio
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from agentcore.errors import BlobLost
from agentcore.events import Event
from agentcore.record import ConversationState
from agentcore.wire.frames import EventFrame
from agentcore.wire.requests import EventPage, RequestBody, UsageInfo
from agentcore.wire.routes import CONVERSATIONS
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import Call, Route

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_TAG: Final = "events"
_CLOSE_SECONDS: Final = 5.0


def _as_list(value: object) -> object:
    """Return the values of a parameter that may be repeated."""
    return cast("object", value) if isinstance(value, list | tuple) else [value]


class EventsQuery(RequestBody):
    """A part of the log. Without `before` it is read forwards from `after`, with `before` alone backwards."""

    after: Annotated[int, Field(ge=0)] = 0
    """The events behind this seq."""
    before: Annotated[int, Field(ge=1)] | None = None
    """The events in front of this seq; the newest of them, unless `after` is there."""
    kind: Annotated[tuple[str, ...], BeforeValidator(_as_list)] = ()
    """Only events of these kinds."""
    limit: Annotated[int, Field(ge=1, le=500)] = 100


async def _list_events(call: Call) -> EventPage:
    query = cast("EventsQuery", call.query)
    state = (await call.hub.watch(call.identity, call.params["id"])).state
    last = state.head if query.before is None else min(query.before - 1, state.head)
    backwards = query.before is not None and "after" not in query.model_fields_set
    seqs: Iterable[int] = range(last, query.after, -1) if backwards else range(query.after + 1, last + 1)
    found = list(_take(state, seqs, frozenset(query.kind), query.limit + 1))
    more = len(found) > query.limit
    found = found[: query.limit]
    if backwards:
        found.reverse()
    edge = None if not more else (found[0].seq if backwards else found[-1].seq)
    return EventPage(
        items=tuple(_frame(state, event) for event in found), birth=birth_of(state), head=state.head, next=edge
    )


def _take(state: ConversationState, seqs: Iterable[int], kinds: frozenset[str], most: int) -> Iterator[Event]:
    for seq in seqs:
        event = state.events[seq - 1]
        if not kinds or event.kind in kinds:
            yield event
            most -= 1
            if most == 0:
                return


def _frame(state: ConversationState, event: Event) -> EventFrame:
    # As it is: validating an event that is one already would cost more than writing it.
    return EventFrame.model_construct(seq=event.seq, group=state.group_of(event.seq), event=event)


def birth_of(state: ConversationState) -> str | None:
    """Return the id of the log's first event."""
    return state.events[0].id if state.events else None


async def _read_blob(call: Call) -> Response:
    digest = call.params["sha256"]
    if _DIGEST.fullmatch(digest) is None:
        raise Refused(422, "invalid_request", "A blob is named by its SHA-256: 64 hexadecimal digits.")
    hub, conversation_id = call.hub, call.params["id"]
    await hub.watch(call.identity, conversation_id)  # refuses what is another owner's
    log = await hub.store.open(conversation_id, write=False)
    try:
        data = await log.read_blob(digest)
    except BlobLost:
        raise Refused(404, "blob_not_found", "There is no such blob.") from None
    finally:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await log.close()
    # Never rendered: it is whatever a model or a tool wrote.
    headers = {"Content-Disposition": "attachment", "Cache-Control": "private, max-age=31536000, immutable"}
    return Response(data, media_type="application/octet-stream", headers=headers)


async def _read_usage(call: Call) -> UsageInfo:
    state = (await call.hub.watch(call.identity, call.params["id"])).state
    return UsageInfo(
        total=state.usage,
        cost=state.usage.cost,
        run=state.run.usage,
        by_model=dict(state.usage_by_model),
        limits=state.limits,
    )


EVENTS: Final = (
    Route(
        "GET",
        CONVERSATIONS + "/{id}/events",
        _list_events,
        "read",
        answer=EventPage,
        query=EventsQuery,
        summary="A page of the log.",
        tag=_TAG,
    ),
    Route(
        "GET",
        CONVERSATIONS + "/{id}/blobs/{sha256}",
        _read_blob,
        "read",
        media="application/octet-stream",
        summary="A large piece of the log, as bytes.",
        tag=_TAG,
    ),
    Route(
        "GET",
        CONVERSATIONS + "/{id}/usage",
        _read_usage,
        "read",
        answer=UsageInfo,
        summary="Tokens and cost, in all and of the newest run.",
        tag=_TAG,
    ),
)
"""The routes that read a log."""
