"""Conversations as a collection: make, find, look at and change them."""

from __future__ import annotations

from typing import Annotated, Final, cast

from pydantic import Field
from starlette.responses import Response

from agentcore import commands
from agentcore.conversation.journal import Attachment
from agentcore.events import ConversationStatus
from agentcore.security import as_checks, read_checks
from agentcore.wire.requests import (
    ConversationInfo,
    ConversationPage,
    ConversationPatch,
    ConversationSpec,
    RequestBody,
    encode_body,
)
from agentcore.wire.routes import CONVERSATIONS, refuse
from agentcore_serve.auth.identity import require_scope
from agentcore_serve.refused import Refused
from agentcore_serve.routes.dispatch import refusing
from agentcore_serve.routes.table import Call, Route

_TAG: Final = "conversations"


class ListQuery(RequestBody):
    """Which conversations, the newest first."""

    cursor: str | None = None
    """The `next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    status: ConversationStatus | None = None
    tag: str | None = None
    """name=value, or a name."""
    text: str | None = None
    """With these words in title, tags or last words."""


class PutQuery(RequestBody):
    """How one that is there is opened."""

    replace: bool = False
    """Open one that was made of another body with this one from now on; what it leaves out stays as it was."""
    create: bool = True
    """Make it where there is none; with 0 that is a 404."""


async def _create(call: Call) -> Response:
    return await _make(call, None)


async def _put(call: Call) -> Response:
    return await _make(call, call.params["id"])


async def _make(call: Call, conversation_id: str | None) -> Response:
    spec = cast("ConversationSpec", call.body)
    if not isinstance(spec.agent, str | None):
        require_scope(call.identity, "agents")
    query = call.query if isinstance(call.query, PutQuery) else PutQuery()
    served, created = await call.hub.create_or_open(
        call.identity, spec, conversation_id, replace=query.replace, create=query.create
    )
    mounted_at = call.connection.scope.get("root_path", "")
    headers = {"Location": f"{mounted_at}{CONVERSATIONS}/{served.id}"} if created else None
    return Response(
        encode_body(served.info()),
        status_code=201 if created else 200,
        media_type="application/json",
        headers=headers,
    )


async def _list(call: Call) -> Response:
    query = cast("ListQuery", call.query)
    page = await call.hub.list(
        call.identity,
        cursor=query.cursor,
        limit=query.limit,
        status=query.status,
        tag=query.tag,
        text=query.text,
    )
    # As the index has it: reading each one only to write it again would be most of the work.
    return Response(page.encode(), media_type="application/json")


async def _get(call: Call) -> ConversationInfo:
    return (await call.hub.watch(call.identity, call.params["id"])).info()


async def _patch(call: Call) -> ConversationInfo:
    """Change what the body names. Each change is a command of its own; what does not fit is refused before the first."""
    patch = cast("ConversationPatch", call.body)
    served = await call.hub.open(call.identity, call.params["id"])
    link, by = served.conversation.link, call.identity.key_id
    link.check()
    changes: list[tuple[commands.Command, Attachment | None]] = []
    if "policy" in patch.model_fields_set and patch.policy is not None:
        require_scope(call.identity, "approve")
        checks = read_checks(patch.policy)
        if checks is None:
            with refusing("body"):
                raise refuse("policy", "There is no such policy here.")
        changes.append((commands.SetPolicy(policy=patch.policy, by=by), Attachment(checks=as_checks(checks))))
    if patch.limits is not None:
        changes.append((commands.SetLimits(limits=patch.limits, by=by), None))
    if patch.title is not None:
        changes.append((commands.SetTitle(title=patch.title, by=by), None))
    if patch.tags is not None:
        changes.append((commands.SetTags(tags=patch.tags, by=by), None))
    if not changes:
        raise Refused(422, "invalid_request", "The body changes nothing.")
    for command, attachment in changes:
        await link.execute(command, attachment)
    return served.info()


COLLECTION: Final = (
    Route(
        "POST",
        CONVERSATIONS,
        _create,
        "run",
        body=ConversationSpec,
        answer=ConversationInfo,
        status=201,
        summary="Create a conversation.",
        tag=_TAG,
    ),
    Route(
        "GET",
        CONVERSATIONS,
        _list,
        "read",
        answer=ConversationPage,
        query=ListQuery,
        summary="Conversations of this key's owner, the newest first.",
        tag=_TAG,
    ),
    Route(
        "PUT",
        CONVERSATIONS + "/{id}",
        _put,
        "run",
        body=ConversationSpec,
        answer=ConversationInfo,
        also=((201, ConversationInfo),),
        query=PutQuery,
        summary="Create a conversation with this id, or open the one that was made of the same.",
        tag=_TAG,
    ),
    Route(
        "GET",
        CONVERSATIONS + "/{id}",
        _get,
        "read",
        answer=ConversationInfo,
        summary="A conversation in short.",
        tag=_TAG,
    ),
    Route(
        "PATCH",
        CONVERSATIONS + "/{id}",
        _patch,
        "run",
        body=ConversationPatch,
        answer=ConversationInfo,
        summary="Change title, tags, limits or policy.",
        tag=_TAG,
    ),
)
"""Conversations themselves."""
