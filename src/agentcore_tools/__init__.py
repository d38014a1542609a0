"""Tools for agents that write software: a terminal, files, search, and more, one per file."""
