"""Workspaces apart from the host, in which tools can do no harm outside. It holds nothing yet."""
