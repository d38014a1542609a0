"""Shared parts of the tools for files: allowed paths, reading, changing, showing, and the memory of what was seen."""
