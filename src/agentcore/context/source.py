"""The seam for what an agent is shown besides its instructions: project files, memory, skills.

Above: the conversation, which opens the sources before its first step, and asks them after each message and each call
whether there is more to show. Below: the workspace, through which they read.

A recorded source is made again only if a factory is registered under its name: by this program (`register_context_source`)
or by an installed distribution (an entry point in the group "agentcore.context_sources", as in
`project_files = "agentcore.context:ProjectFiles"`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from pydantic import JsonValue

from agentcore._arguments import has_methods
from agentcore._registry import Factories
from agentcore._text import Mask
from agentcore._value import Value
from agentcore.workspace import Workspace


class ContextPart(NamedTuple):
    """A piece of context. The model is shown each name once, until its text changes or a cut took it away."""

    name: str
    """Unique in the conversation, as "file:src/AGENTS.md", "memory:project" or "skill:deploy"."""
    text: str
    """The text as the model is to read it, with a heading that says where it comes from."""


class SourceSpec(Value):
    """A source as a log holds it: the name of its factory and the parameters to make it again. Never the value of a secret."""

    name: str
    params: dict[str, JsonValue] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """Handed to a source when it is opened."""

    workspace: Workspace
    """Where the agent works: what belongs to the project is read through it."""
    mask: Mask
    """Replaces secrets: call it before text is cut. What a source returns is masked all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """The events since the source was asked last, as far as they concern it."""

    messages: Sequence[str] = ()
    """The texts of the user's new messages."""
    touched: Sequence[str] = ()
    """The absolute paths of files and folders that the agent's calls have read or changed."""
    shown: Collection[str] = ()
    """The names of the parts that the model is shown now, in the prompt or after it."""


class OpenSource(Protocol):
    """A source that has read what it reads."""

    @property
    def parts(self) -> Sequence[ContextPart]:
        """The parts for the system prompt."""
        ...

    @property
    def problems(self) -> Sequence[str]:
        """One sentence for each thing that was left out, which names it (a file and line where there is one)."""
        ...

    async def follow(self, happened: Happened) -> Sequence[ContextPart]:
        """Return the parts to show now because of what happened; they are appended to the history."""
        ...


class ReadSource:
    """A source that is read once: it has parts, and follows nothing."""

    def __init__(self, parts: Sequence[ContextPart] = (), problems: Sequence[str] = ()) -> None:
        self.parts = parts
        self.problems = problems

    async def follow(self, happened: Happened) -> Sequence[ContextPart]:  # noqa: ARG002 nothing concerns it
        """Return nothing."""
        return ()


class ContextSource(Protocol):
    """A source of context: a frozen value that serves any number of conversations at once."""

    @property
    def name(self) -> str:
        """The name in errors and events, as in "project files"."""
        ...

    async def open(self, context: SourceContext) -> OpenSource:
        """Read what there is. Called before the first step, and again after a cut and a rewind."""
        ...

    def record(self) -> SourceSpec | None:
        """Return the source as a log holds it; None where it cannot be written down."""
        ...


CONTEXT_SOURCE_ENTRY_POINTS: Final = "agentcore.context_sources"
"""The entry point group in which an installed distribution declares its sources of context."""

ContextSourceFactory: TypeAlias = Callable[..., ContextSource]
"""Makes a source of recorded parameters; the class of the source itself, most often."""

_SOURCES: Final[Factories[ContextSource]] = Factories(
    "context source",
    lambda made: has_methods(made, "name", "open", "record"),
    group=CONTEXT_SOURCE_ENTRY_POINTS,
    register="register_context_source",
)


def register_context_source(name: str, factory: ContextSourceFactory) -> None:
    """Make sources recorded under this name with this factory.

    Raises:
        ValueError: the name has another factory.
    """
    _SOURCES.register(name, factory)


def resolve_context_source(spec: SourceSpec) -> ContextSource:
    """Make a recorded source again. It may import modules: call it in a worker thread where that must not block.

    Raises:
        ToolNotFound: it is not registered, or refused the parameters.
    """
    return _SOURCES.make(spec.name, spec.params)
