"""Workspaces apart from the host, in which tools can do no harm outside. Importing it loads no engine's client."""

from agentcore_sandbox.bubblewrap import BubblewrapWorkspace as BubblewrapWorkspace
from agentcore_sandbox.docker import DockerWorkspace as DockerWorkspace
from agentcore_sandbox.network.policy import Allow as Allow
