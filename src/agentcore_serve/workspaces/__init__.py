"""Workspaces on the server: what a `RemoteWorkspace` talks to."""

from agentcore_serve.workspaces.hub import OpenWorkspace as OpenWorkspace
from agentcore_serve.workspaces.hub import WorkspaceHub as WorkspaceHub
from agentcore_serve.workspaces.hub import WorkspaceLimits as WorkspaceLimits
from agentcore_serve.workspaces.hub import WorkspaceMaker as WorkspaceMaker
from agentcore_serve.workspaces.records import WorkspaceRecord as WorkspaceRecord
from agentcore_serve.workspaces.routes import WORKSPACES as WORKSPACES
