"""Boxes of bubblewrap: namespaces of this machine, for any user."""

from agentcore_sandbox.bubblewrap.workspace import BubblewrapWorkspace as BubblewrapWorkspace
