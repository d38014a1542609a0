"""Which recorded sources of context can be made again here.

A source is made again only if a factory is registered under its name: by this program (`register_context_source`) or by an
installed distribution (an entry point in the group "agentcore.context_sources", as in
`project_files = "agentcore.context:ProjectFiles"`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from agentcore._arguments import has_methods
from agentcore._registry import Factories
from agentcore.context.source import ContextSource, SourceSpec

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
