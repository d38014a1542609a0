"""A small MCP server, for the examples: notes, kept while it runs. It is started by them, and speaks over its input and output."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes", instructions="Titles are one word.")
notes = {"chores": "Water the plants."}


@server.tool()
async def read_note(title: str) -> str:
    """Return a note."""
    return notes.get(title, "There is no such note.")


@server.tool()
async def write_note(title: str, text: str) -> str:
    """Write a note."""
    notes[title] = text
    return "Written."


@server.tool()
async def delete_all_notes() -> str:
    """Delete every note."""
    notes.clear()
    return "Deleted."


if __name__ == "__main__":
    server.run("stdio")
