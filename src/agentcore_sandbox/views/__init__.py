"""Views: a desktop, an editor or another web program inside of a workspace, for a person's browser."""

from agentcore_sandbox.views.tickets import Tickets as Tickets
from agentcore_sandbox.views.view import WebView as WebView
from agentcore_sandbox.views.view import parse_views as parse_views
