"""The server: conversations for other programs and machines. `agentcore serve`, or `create_app` in a program of one's own."""

from agentcore_serve.app import ServeApp as ServeApp
from agentcore_serve.app import create_app as create_app
from agentcore_serve.limits import RequestLimits as RequestLimits
from agentcore_serve.settings import ServeLimits as ServeLimits
from agentcore_serve.settings import ServeSettings as ServeSettings
from agentcore_serve.settings import SettingsError as SettingsError
from agentcore_serve.settings import WorkspacesFactory as WorkspacesFactory
