"""Which recorded toolsets can be made again here: those whose factory this program registered, or an installed distribution declares.

A log may come from anywhere, so a name in it never decides what is imported (see `agentcore.tools.registry`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pydantic import JsonValue

from agentcore.errors import AgentcoreError, ToolNotFound
from agentcore.tools.entry_points import load_declared
from agentcore.tools.spec import ToolsetSpec
from agentcore.tools.toolset import Toolset
from agentcore.tools.toolset_wrappers import FilteredToolset, PrefixedToolset, RenamedToolset

__all__ = ["TOOLSET_ENTRY_POINTS", "ToolsetFactory", "ToolsetRegistry", "register_toolset", "resolve_toolset"]

TOOLSET_ENTRY_POINTS: Final = "agentcore.toolsets"
"""The entry point group in which an installed distribution declares its toolsets."""

ToolsetFactory: TypeAlias = Callable[..., Toolset]
"""Makes a toolset of recorded parameters; the class of the toolset itself, most often."""


class ToolsetRegistry:
    """Factories of toolsets by name. The wrappers are always among them."""

    def __init__(self) -> None:
        self._factories: dict[str, ToolsetFactory] = {
            "prefixed": self._prefixed,
            "filtered": self._filtered,
            "renamed": self._renamed,
        }

    def register(self, name: str, factory: ToolsetFactory) -> None:
        """Make toolsets recorded under this name with this factory.

        Raises:
            ValueError: the name has another factory.
        """
        if self._factories.setdefault(name, factory) is not factory:
            raise ValueError(f"There is another toolset factory under the name {name!r}. Choose another name.")

    def resolve(self, spec: ToolsetSpec) -> Toolset:
        """Make a recorded toolset again. It may import modules: call it in a worker thread where that must not block.

        Raises:
            ToolNotFound: it is not registered, or refused the parameters.
        """
        factory = self._factories.get(spec.name)
        if factory is None:
            factory = load_declared(TOOLSET_ENTRY_POINTS, spec.name, what="toolset", register="register_toolset")
        try:
            made: Any = factory(**spec.params)
        except ToolNotFound:
            raise
        except (TypeError, ValueError, AgentcoreError) as error:
            reason = f"it refused its parameters {spec.params!r}: {error}"
            raise ToolNotFound(spec.name, reason, what="toolset") from error
        if isinstance(made, type) or not isinstance(made, Toolset):
            raise ToolNotFound(spec.name, f"what was made is not a toolset but {made!r}.", what="toolset")
        return made

    def _prefixed(self, toolset: JsonValue, prefix: str) -> Toolset:
        return PrefixedToolset(self._inner(toolset), prefix)

    def _filtered(self, toolset: JsonValue, keep: list[str]) -> Toolset:
        return FilteredToolset(self._inner(toolset), frozenset(keep))

    def _renamed(self, toolset: JsonValue, names: dict[str, str]) -> Toolset:
        return RenamedToolset(self._inner(toolset), names)

    def _inner(self, spec: JsonValue) -> Toolset:
        return self.resolve(ToolsetSpec.model_validate(spec))


# The one registry of the process, for programs that need no second one.
_REGISTRY: Final = ToolsetRegistry()

register_toolset = _REGISTRY.register
resolve_toolset = _REGISTRY.resolve
