"""The parts of a conversation that its client runs: tools, sources of secrets, decisions.

Above: the hub, which opens conversations with them, and the route that takes the answers. Below: what is asked of clients.
"""

from __future__ import annotations

from typing import Final, cast

from agentcore.messages import ToolSchema
from agentcore.tools import Resource, ToolAnnotations
from agentcore.wire.asks import AskResult
from agentcore.wire.requests import ConversationSpec
from agentcore.wire.routes import CONVERSATIONS
from agentcore_serve.asks import ClientAsks
from agentcore_serve.decisions import ClientDecisions
from agentcore_serve.opening import ClientParts
from agentcore_serve.refused import Refused
from agentcore_serve.routes.dispatch import refusing
from agentcore_serve.routes.table import Call, Route


def make_client_parts(conversation_id: str, spec: ConversationSpec) -> ClientParts:
    """Make the parts of a conversation that its client runs, of what the client said when it opened it."""
    del conversation_id
    asks = ClientAsks()
    decisions = ClientDecisions(asks)
    tools = [
        asks.tool_for(
            ToolSchema(name=tool.name, description=tool.description, parameters=tool.parameters),
            annotations=ToolAnnotations.model_validate(tool.annotations),
            resources=None if tool.resources is None else tuple(map(Resource.model_validate, tool.resources)),
        )
        for tool in spec.tools
    ]
    return ClientParts(
        tools=tools,
        secrets={name: asks.secret(name) for name in spec.client_secrets},
        confirm=decisions.confirm if spec.confirm else None,
        on_question=decisions.on_question if spec.on_question else None,
        asks=asks,
    )


async def _answer(call: Call) -> bool:
    served = await call.hub.open(call.identity, call.params["id"])
    try:
        with refusing("body"):
            return cast("ClientAsks", served.parts.asks).answer(call.params["ask"], cast("AskResult", call.body))
    except ValueError:
        raise Refused(422, "invalid_request", "That is not an answer to what was asked.") from None


ASKS: Final = (
    Route(
        "POST",
        CONVERSATIONS + "/{id}/asks/{ask}",
        _answer,
        "run",
        body=AskResult,
        answer=bool,
        summary="Answer what the server asked of this client; false where nobody waits for it any more.",
        tag="client parts",
    ),
)
"""The route by which clients answer."""
