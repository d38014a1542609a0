"""Lists of tools as a server sends them: one that is none is taken out before mcp's client refuses the whole list for it."""

from __future__ import annotations

from typing import Any, Final, cast

from mcp_types.methods import validate_server_result
from pydantic import ValidationError

_MOST_NAMED: Final = 20


def drop_unsound_tools(result: dict[str, Any], version: str) -> list[str]:
    """Take out of a list what is not a tool in this version of MCP, in place; return a sentence for each.

    A schema without a type is one of an object, as it has to be.
    """
    tools = cast("list[Any]", result["tools"])
    for tool in tools:
        schema = cast("dict[str, Any]", tool).get("inputSchema") if isinstance(tool, dict) else None
        if isinstance(schema, dict):
            cast("dict[str, Any]", schema).setdefault("type", "object")
    try:
        validate_server_result("tools/list", version, result)
    except ValidationError as error:
        problems = _problems(error)
    else:
        return []
    result["tools"] = [tool for number, tool in enumerate(tools) if number not in problems]
    notices = [f"Its tool {_name(tools[number])} is left out: {why}." for number, why in problems.items()]
    if len(notices) > _MOST_NAMED:
        notices[_MOST_NAMED:] = [f"{len(notices) - _MOST_NAMED:,} more of its tools are left out."]
    return notices


def _problems(error: ValidationError) -> dict[int, str]:
    problems: dict[int, str] = {}
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        match detail["loc"]:
            case ("tools", int(number), *where):
                place = f"{'.'.join(map(str, where))}: " if where else ""
                # Which class of mcp's it could be instead helps nobody.
                problems.setdefault(number, place + detail["msg"].partition(" or instance of ")[0])
            case _:
                pass
    return problems


def _name(tool: Any) -> str:
    name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return repr(name if len(name) <= 80 else f"{name[:77]}...") if isinstance(name, str) else "without a name"
