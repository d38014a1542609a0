"""Tools that come together and are open while a conversation is: an MCP server's, a browser's, those of a remote catalogue.

Below: tools. Above: the wrappers (`prefixed`, `filtered`, `renamed`), and the conversation, which opens a toolset once, in
a task of its own. A `Toolset` is a value that holds nothing; what is live is the `OpenToolset` that it opens.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Protocol, final, runtime_checkable

from agentcore._arguments import TEXT, TEXT_BY_NAME, Argument, checked, has_methods
from agentcore.messages import ToolSchema
from agentcore.tools.context import ToolSecrets
from agentcore.tools.definition import AnyTool, ToolsetSpec
from agentcore.workspace import Workspace


@dataclass(frozen=True, kw_only=True, eq=False)
class ToolsetContext:
    """Handed to a toolset when it is opened."""

    workspace: Workspace
    """Where the conversation works: `workspace.root` is its folder, and processes are started through it."""
    conversation_id: str
    secrets: ToolSecrets = field(repr=False)
    """`await context.secrets.get(name)`; what is read here is masked in what tools say and in what is recorded."""
    notice: Callable[[str], None] = field(repr=False)
    """Notify the people, not the model: the text is logged, and recorded with the next message. Never waits."""
    deps: Any = field(default=None, repr=False)
    """The value that the program passed as `Conversation(deps=...)`."""
    open_seconds: float = 30.0
    """How long the conversation waits for the opening. One that takes longer goes on, and its tools come with the next message."""


class OpenToolset(Protocol):
    """A toolset that is open. All of it is called in the conversation's event loop."""

    @property
    def instructions(self) -> str | None:
        """A text for the system prompt on the tools as a whole, or None."""
        ...

    def tools(self) -> Sequence[AnyTool]:
        """Return the tools as of now, bound to this opening. Never waits: a list that has to be fetched is fetched before.

        Return the same `Tool` object for a tool that has not changed: its schema is made once.
        """
        ...

    async def wait_closed(self) -> str:
        """Wait until it is of no use any more (the connection broke, the process ended), and return why.

        A toolset that cannot end by itself waits for ever (`anyio.sleep_forever`).
        """
        ...


@runtime_checkable
class Toolset(Protocol):
    """A source of tools: `Agent(tools=[my_tool, my_toolset])`. One value serves any number of conversations at once."""

    @property
    def name(self) -> str:
        """Its name for people, in notices and errors."""
        ...

    @property
    def session_key(self) -> str | None:
        """Equal keys may share one opening some day (the conversations of a host, sub-agents). None: each has its own."""
        ...

    def record(self) -> ToolsetSpec | None:
        """Return what `resolve_toolset` makes it again from: plain data, names of secrets and never their values. None: it can't be."""
        ...

    def open(self, context: ToolsetContext, /) -> AbstractAsyncContextManager[OpenToolset]:
        """Open it for one conversation. One task enters and leaves the context, so task groups may be held open inside.

        When it ends by itself (see `OpenToolset.wait_closed`) it is left, and opened again after a delay.
        """
        ...


_LONGEST: Final = 64
_HASHED: Final = 8
_PREFIX: Final = re.compile(r"[a-zA-Z0-9_-]{1,32}")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Change = Callable[[AnyTool], AnyTool | None]
"""Makes another tool of one, gives it as it is, or leaves it out."""


def _is_toolset(value: object) -> bool:
    return has_methods(value, "record", "open") and isinstance(value, Toolset)


_TOOLSET: Final = Argument("a toolset", _is_toolset)


@checked(toolset=_TOOLSET, prefix=TEXT)
def prefixed(toolset: Toolset, prefix: str) -> Toolset:
    """Put a prefix before the names of all tools, so that no other tool has them: `prefixed(server, "github_")`.

    A name that would be longer than the 64 characters that providers take is cut, and ends in a hash of the whole.

    Raises:
        ValueError: the prefix is not 1 to 32 letters, digits, `_` or `-`.
    """
    return PrefixedToolset(toolset, prefix)


@checked(toolset=_TOOLSET)
def filtered(toolset: Toolset, keep: Collection[str] | Callable[[AnyTool], bool]) -> Toolset:
    """Keep only some tools: those of these names, or those for which a function is true.

    With names it is recorded; a function can't be.
    """
    return FilteredToolset(toolset, keep if callable(keep) else frozenset((keep,) if isinstance(keep, str) else keep))


@checked(toolset=_TOOLSET, names=TEXT_BY_NAME)
def renamed(toolset: Toolset, names: Mapping[str, str]) -> Toolset:
    """Rename tools: `renamed(server, {"search_v2": "search"})`. Tools that are not mentioned keep theirs.

    Raises:
        ValueError: a new name can't be a tool's, or two tools would be called the same.
    """
    return RenamedToolset(toolset, dict(names))


@dataclass(frozen=True)
class PrefixedToolset:
    """See `prefixed`."""

    toolset: Toolset
    prefix: str

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise ValueError(f"{self.prefix!r} can't be a prefix of tools: use 1 to 32 letters, digits, '_' or '-'.")

    @property
    def name(self) -> str:
        return self.toolset.name

    @property
    def session_key(self) -> str | None:
        return _wrapped_key(self.toolset, "prefixed", self.prefix)

    def record(self) -> ToolsetSpec | None:
        return _wrapped_spec("prefixed", self.toolset, self.prefix)

    def open(self, context: ToolsetContext, /) -> AbstractAsyncContextManager[OpenToolset]:
        return _open_changed(self.toolset, context, lambda tool: _rename(tool, self.prefix + tool.name))


@dataclass(frozen=True)
class FilteredToolset:
    """See `filtered`."""

    toolset: Toolset
    keep: frozenset[str] | Callable[[AnyTool], bool]

    @property
    def name(self) -> str:
        return self.toolset.name

    @property
    def session_key(self) -> str | None:
        return None if callable(self.keep) else _wrapped_key(self.toolset, "filtered", *sorted(self.keep))

    def record(self) -> ToolsetSpec | None:
        return None if callable(self.keep) else _wrapped_spec("filtered", self.toolset, sorted(self.keep))

    def open(self, context: ToolsetContext, /) -> AbstractAsyncContextManager[OpenToolset]:
        keep = self.keep
        if callable(keep):
            return _open_changed(self.toolset, context, lambda tool: tool if keep(tool) else None)
        return _open_changed(self.toolset, context, lambda tool: tool if tool.name in keep else None)


@dataclass(frozen=True)
class RenamedToolset:
    """See `renamed`."""

    toolset: Toolset
    names: Mapping[str, str]

    def __post_init__(self) -> None:
        new = list(self.names.values())
        if odd := [name for name in new if not _NAME.fullmatch(name)]:
            raise ValueError(f"{odd[0]!r} can't be the name of a tool: use 1 to 64 letters, digits, '_' or '-'.")
        if doubled := [name for name in new if new.count(name) > 1]:
            raise ValueError(f"Two tools would be called {doubled[0]!r}: a model could not tell them apart.")

    @property
    def name(self) -> str:
        return self.toolset.name

    @property
    def session_key(self) -> str | None:
        return _wrapped_key(self.toolset, "renamed", *(f"{old}={new}" for old, new in sorted(self.names.items())))

    def record(self) -> ToolsetSpec | None:
        return _wrapped_spec("renamed", self.toolset, dict(self.names))

    def open(self, context: ToolsetContext, /) -> AbstractAsyncContextManager[OpenToolset]:
        return _open_changed(self.toolset, context, lambda tool: _rename(tool, self.names.get(tool.name, tool.name)))


class _OpenChanged:
    """An open toolset whose tools are changed on their way out, each once."""

    def __init__(self, inner: OpenToolset, change: Change) -> None:
        self._inner = inner
        self._change = change
        self._changed: dict[AnyTool, AnyTool | None] = {}
        self._given: tuple[AnyTool, ...] = ()
        self._tools: Sequence[AnyTool] = ()

    @property
    def instructions(self) -> str | None:
        return self._inner.instructions

    def tools(self) -> Sequence[AnyTool]:
        given = tuple(self._inner.tools())
        if given == self._given:
            return self._tools
        known = self._changed
        # Made anew each time, so that a tool that is gone is forgotten; by identity, which is what tools are compared by.
        self._changed = {tool: known[tool] if tool in known else self._change(tool) for tool in given}
        self._given, self._tools = given, tuple(tool for tool in self._changed.values() if tool is not None)
        return self._tools

    async def wait_closed(self) -> str:
        return await self._inner.wait_closed()


@asynccontextmanager
async def _open_changed(toolset: Toolset, context: ToolsetContext, change: Change) -> AsyncGenerator[OpenToolset]:
    async with toolset.open(context) as inner:
        yield _OpenChanged(inner, change)


def _rename(tool: AnyTool, name: str) -> AnyTool:
    if name == tool.name:
        return tool
    if len(name) > _LONGEST:
        # Two names that begin alike stay two names.
        name = f"{name[: _LONGEST - _HASHED - 1]}_{hashlib.sha256(name.encode()).hexdigest()[:_HASHED]}"
    return replace(tool, name=name, spec=None)


def _wrapped_key(toolset: Toolset, kind: str, *parameters: str) -> str | None:
    key = toolset.session_key
    return None if key is None else repr((kind, parameters, key))


def _wrapped_spec(kind: str, toolset: Toolset, parameter: str | list[str] | dict[str, str]) -> ToolsetSpec | None:
    spec = toolset.record()
    if spec is None:
        return None
    return ToolsetSpec.model_validate(
        {"name": kind, "params": {"toolset": spec.model_dump(mode="json"), _PARAMETERS[kind]: parameter}}
    )


_PARAMETERS: Final = {"prefixed": "prefix", "filtered": "keep", "renamed": "names"}


@final
class ToolSnapshot:
    """Tools as they were at one time, in order. A tool that changes later does not change it."""

    def __init__(
        self,
        tools: Iterable[AnyTool] = (),
        instructions: Mapping[str, str] | None = None,
        deferred: Sequence[str] = (),
    ) -> None:
        """Take the tools, whose names are distinct, the instructions of toolsets by their names, and the deferred toolsets' names."""
        self.tools: tuple[AnyTool, ...] = tuple(tools)
        self.instructions: Mapping[str, str] = dict(instructions or {})
        """The instructions of toolsets, by their names."""
        self.deferred: tuple[str, ...] = tuple(deferred)
        """The names of the toolsets whose tools are not among these, because they are searched for."""

    def __repr__(self) -> str:
        return f"<ToolSnapshot of {len(self.tools)} tools>"

    @cached_property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The schema of each tool."""
        return tuple(tool.schema for tool in self.tools)

    def is_of(self, tools: Sequence[AnyTool], instructions: Mapping[str, str], deferred: Sequence[str] = ()) -> bool:
        """Return True if it is a snapshot of these very tools."""
        return (self.tools, self.deferred) == (tuple(tools), tuple(deferred)) and self.instructions == instructions
