"""Shared parts of the tools for files: allowed paths, reading, changing, showing, and the memory of what was seen.

What can't be done raises `ToolError`, whose text tells the model what to do instead, or the workspace's `PathError`.
"""
