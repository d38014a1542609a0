"""A server's resources, as one tool that lists and reads them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import mcp_types as types
from pydantic import TypeAdapter

from agentcore.errors import ToolError
from agentcore.mcp.calls import Calls
from agentcore.mcp.names import tool_name
from agentcore.mcp.results import MCPObservation, read_blocks
from agentcore.messages import TextBlock
from agentcore.tools import AnyTool, ToolContext, raw_tool
from agentcore.tools.definition import Arguments

READ_RESOURCE: Final = "read_resource"
_MOST_PAGES: Final = 20
_MOST_LISTED: Final = 500

_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "uri": {"type": "string", "description": "The URI of the resource. Leave it out to list what there is."}
    },
    "additionalProperties": False,
}
_READ: Final[TypeAdapter[types.ReadResourceResult | types.InputRequiredResult]] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)


def resource_tool(calls: Calls, taken: Collection[str]) -> AnyTool:
    """Make the tool of a server that has resources; `taken` are the names of its other tools."""
    server = calls.server
    name = tool_name(server.name, READ_RESOURCE)
    if name in taken:
        name = tool_name(server.name, f"agentcore.{READ_RESOURCE}")

    async def execute(arguments: Arguments, ctx: ToolContext) -> MCPObservation:
        uri = arguments.get("uri")
        return await _read(calls, str(uri), ctx) if uri else await _list(calls, ctx)

    return raw_tool(
        name,
        f"Read a resource of the MCP server {server.name!r}: data that it offers beside its tools. Without a uri, list them.",
        _PARAMETERS,
        execute,
        resources=() if server.transport != "stdio" else None,
    )


async def _read(calls: Calls, uri: str, ctx: ToolContext) -> MCPObservation:
    request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
    result = await calls.request(request, _READ, ctx)
    if isinstance(result, types.InputRequiredResult):
        raise ToolError(
            f"The MCP server {calls.server.name!r} wants to ask something before it answers, which it can't here."
        )
    parts = [types.EmbeddedResource(type="resource", resource=each) for each in result.contents]
    content = await read_blocks(parts, ctx, calls.mask)
    return MCPObservation(content=content or (TextBlock(text="The resource is empty."),))


async def _list(calls: Calls, ctx: ToolContext) -> MCPObservation:
    lines: list[str] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        params = types.PaginatedRequestParams(cursor=cursor)
        page = await calls.request(types.ListResourcesRequest(params=params), types.ListResourcesResult, ctx)
        lines += [_line(str(each.uri), each.title or each.name, each.description) for each in page.resources]
        cursor = page.next_cursor
        if cursor is None or len(lines) >= _MOST_LISTED:
            break
    more = ["There are more."] if cursor is not None or len(lines) > _MOST_LISTED else []
    try:
        found = await calls.request(types.ListResourceTemplatesRequest(), types.ListResourceTemplatesResult, ctx)
    except ToolError:
        templates = []  # a server need not know that there are such
    else:
        templates = [
            _line(each.uri_template, each.title or each.name, each.description) for each in found.resource_templates
        ]
    text = "\n".join([*lines[:_MOST_LISTED], *more, *templates[:_MOST_LISTED]]) or "There are no resources."
    return MCPObservation(content=(TextBlock(text=calls.mask(text)),))


def _line(uri: str, name: str, description: str | None) -> str:
    described = f": {' '.join(description.split())[:300]}" if description else ""
    return f"{uri} ({name}){described}"
