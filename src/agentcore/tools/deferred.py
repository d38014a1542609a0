"""Deferred tools: not in the requests, but found with `search_tools` and called with `call_tool`.

Above: the conversation, which decides what is deferred and keeps the catalogue up to date; the agent's step, which reads the
calls. The two tools that stand in the requests are the same in every conversation, so that no change of a server's tools
changes what comes first in a request, which providers cache.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NoReturn, final

from pydantic import ConfigDict, Field, JsonValue

from agentcore._text import Mask, clip
from agentcore._threads import Threads
from agentcore.tools.catalogue import ToolCatalogue, describe_tool
from agentcore.tools.context import ToolContext
from agentcore.tools.definition import Action, AnyTool, Arguments, Tool, ToolAnnotations
from agentcore.tools.observation import TextObservation
from agentcore.tools.repair import ReadCall, read_call

SEARCH_TOOLS: Final = "search_tools"
CALL_TOOL: Final = "call_tool"

_SEARCHES: Final = Threads("search_tools", 2)
_SCHEMA_LIMIT: Final = 10_000
"""Characters of a schema that is shown where arguments do not fit it."""
_CHANGED: Final = (
    "The tool {name!r} is not what it was when you searched for it: its description or its arguments have changed. Nothing "
    f"was done. Search for it again with {SEARCH_TOOLS}, and decide anew."
)


class SearchToolsAction(Action):
    """A search for tools."""

    model_config = ConfigDict(use_attribute_docstrings=False)

    query: str = Field(default="", description="What to do, in a few words, or names of tools. Empty: what there is.")
    limit: int = Field(default=10, ge=1, le=50, description="The most tools to describe.")
    toolset: str = Field(default="", description="The name of a toolset, to search in it alone.")


class CallToolAction(Action):
    """A call of a tool that was found."""

    model_config = ConfigDict(use_attribute_docstrings=False)

    name: str = Field(description="The name of the tool, as search_tools shows it.")
    arguments: dict[str, JsonValue] = Field(
        default_factory=dict, description="The arguments of the tool, as its parameters say."
    )


@final
class DeferredTools:
    """The deferred tools of one conversation, and the two tools that stand for them."""

    def __init__(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Take what brings the catalogue up to date; it is awaited before each search."""
        self._refresh = refresh
        self.catalogue = ToolCatalogue()
        """The tools as of now; replaced by its owner."""
        self._described: dict[str, str] = {}
        """The digests of the tools that searches have described, as of the newest search."""
        self.pair: Mapping[str, AnyTool] = {tool.name: tool for tool in (_search_tools(self._search), _call_tool())}
        """`search_tools` and `call_tool`, by their names."""

    def read_call(
        self,
        name: str,
        arguments: Mapping[str, JsonValue] | str,
        tools: Sequence[AnyTool],
        *,
        mask: Mask,
    ) -> ReadCall:
        """Read a call: one of `call_tool` as the call of the tool that it names. It never raises on what a model wrote.

        A deferred tool may be called by its name alone, too.

        Args:
            name: The name that the model called.
            arguments: The arguments, as an object or as the text of one.
            tools: The tools of the request.
            mask: As in `agentcore.tools.read_call`.
        """
        if name == CALL_TOOL and (read := self._read_plain(arguments, mask)) is not None:
            return read
        read = read_call(name, arguments, tools, mask=mask)
        if isinstance(read.action, CallToolAction):
            return self._read_inner(read, read.action, tools, mask)
        if read.code == "unknown_tool" and (tool := self.catalogue.get(name)) is not None:
            return self._pin(tool, read_call(name, arguments, (tool,), mask=mask), mask)
        return read

    def _read_plain(self, arguments: Mapping[str, JsonValue] | str, mask: Mask) -> ReadCall | None:
        """Read a call that is written as it should be; None for others. To read it in two steps would double what reading costs."""
        match arguments:
            case {"name": str(called), "arguments": dict(inner), **rest} if not rest:
                tool = self.catalogue.get(called)
            case _:
                return None
        if tool is None:
            return None
        read = read_call(called, inner, (tool,), mask=mask)
        written = {**arguments, "arguments": read.arguments if read.given is None else read.given}
        return self._pin(tool, read._replace(given=written), mask)

    def _read_inner(self, outer: ReadCall, action: CallToolAction, tools: Sequence[AnyTool], mask: Mask) -> ReadCall:
        tool = self.catalogue.get(action.name)
        # By its exact name first: to compare with a thousand names takes longer than all the rest.
        others = (*(each for each in tools if each.action is not CallToolAction), *self.catalogue.tools)
        read = read_call(action.name, action.arguments, others if tool is None else (tool,), mask=mask)
        if read.tool is None:
            problem = f"{read.problem} Search for it with {SEARCH_TOOLS}."
            return outer._replace(action=None, problem=problem, code="unknown_tool")
        meant = read.tool
        read = read._replace(given=outer.arguments if outer.given is None else outer.given)
        is_own = self.catalogue.get(meant.name) is not meant
        return read if is_own else self._pin(meant, read, mask)

    def _pin(self, tool: AnyTool, read: ReadCall, mask: Mask) -> ReadCall:
        """Note which tool the call is for, refuse it where that is not the one that was found, and show what was not seen."""
        digest = tool.schema.digest
        if self._described.get(tool.name, digest) != digest:
            problem = _CHANGED.format(name=tool.name)
            return read._replace(digest=digest, action=None, problem=problem, code="tool_changed")
        if read.code == "bad_arguments":
            schema = clip(describe_tool(tool), _SCHEMA_LIMIT, mask=mask)
            read = read._replace(problem=f"{read.problem}\nThe tool: {schema}")
        return read._replace(digest=digest)

    async def _search(self, action: SearchToolsAction, ctx: ToolContext) -> TextObservation:
        await self._refresh()
        catalogue = self.catalogue

        def search() -> tuple[str, Mapping[str, str]]:
            return catalogue.search(
                action.query, limit=action.limit, toolset=action.toolset or None, mask=ctx.secrets.mask
            )

        text, described = await _SEARCHES.run(search, abandon_on_cancel=True)
        self._described.update(described)
        return TextObservation(text=text)


def _search_tools(
    execute: Callable[[SearchToolsAction, ToolContext], Awaitable[TextObservation]],
) -> Tool[SearchToolsAction, TextObservation]:
    return Tool(
        name=SEARCH_TOOLS,
        description=(
            "Search for tools. There are more than are listed here: their names, descriptions and parameters are found with "
            "this one, and they are called with call_tool. Search before you say that something can't be done."
        ),
        action=SearchToolsAction,
        execute=execute,
        annotations=ToolAnnotations(
            title="Search tools", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=(),
        ignored=("security_risk",),
    )


def _call_tool() -> Tool[CallToolAction, TextObservation]:
    return Tool(
        name=CALL_TOOL,
        description="Call a tool that search_tools has shown, with the arguments that its parameters ask for.",
        action=CallToolAction,
        execute=_never,
        normalize=_gather,
        ignored=("security_risk",),
    )


async def _never(action: CallToolAction, ctx: ToolContext) -> NoReturn:  # noqa: ARG001 every executor is given them
    raise AssertionError("a call of it is read as one of the tool that it names")


def _gather(arguments: Arguments) -> Arguments:
    """Gather the arguments of a tool that were written beside its name."""
    if "arguments" in arguments or "name" not in arguments:
        return arguments
    return {"name": arguments["name"], "arguments": {key: arguments[key] for key in arguments if key != "name"}}
