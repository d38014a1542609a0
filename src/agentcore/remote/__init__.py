"""The remote side: a workspace on a server, and conversations that are held there."""

from agentcore.remote.workspace import RemoteWorkspace as RemoteWorkspace
