"""The routes of the server."""

from agentcore_serve.routes.table import WEBSOCKET as WEBSOCKET
from agentcore_serve.routes.table import Call as Call
from agentcore_serve.routes.table import Endpoint as Endpoint
from agentcore_serve.routes.table import Route as Route
