"""All routes of the server: the ONE list of which its router and its document are made."""

from __future__ import annotations

from agentcore_serve.client_parts import ASKS
from agentcore_serve.page.routes import PAGE
from agentcore_serve.routes.catalog import CATALOG
from agentcore_serve.routes.commands import command_routes
from agentcore_serve.routes.conversations import COLLECTION
from agentcore_serve.routes.document import DOCUMENT
from agentcore_serve.routes.events import EVENTS
from agentcore_serve.routes.keys import KEYS
from agentcore_serve.routes.probes import PROBES
from agentcore_serve.routes.streams import STREAMS
from agentcore_serve.routes.table import Route
from agentcore_serve.workspaces.port_routes import PORTS
from agentcore_serve.workspaces.routes import WORKSPACES
from agentcore_serve.workspaces.tunnel_routes import TUNNELS
from agentcore_serve.workspaces.view_routes import VIEWS


def all_routes() -> list[Route]:
    """Return the routes, in the order in which the document lists them."""
    return [
        *COLLECTION,
        *command_routes(),
        *EVENTS,
        *STREAMS,
        *ASKS,
        *WORKSPACES,
        *PORTS,
        *TUNNELS,
        *VIEWS,
        *CATALOG,
        *KEYS,
        *DOCUMENT,
        *PAGE,
        *PROBES,
    ]
