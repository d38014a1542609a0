"""Which recorded tools can be made again here.

A log may come from anywhere, so a name in it never decides what is imported. A tool is made again only if
- a factory is registered under its name, by this program (`register_tool`) or by an installed distribution (an entry point
  in the group "agentcore.tools", as in `terminal = "agentcore_tools.terminal:terminal_tool"`);
- or, for a function with `@tool`, its module is imported already, or this program (`allow_imports`) or an installed
  distribution (an entry point in the same group that names a module and nothing in it) allows that module by name. And what
  stands there has to be a tool: no other function of the module can be reached.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, cast

from pydantic import JsonValue

from agentcore._registry import Factories, entry_points_in, load_declared
from agentcore.errors import AgentcoreError, ToolNotFound
from agentcore.tools.ask_user import ask_user
from agentcore.tools.builtin import OutputSchema, finish_tool, think_tool
from agentcore.tools.definition import AnyTool, Tool, ToolsetSpec, ToolSpec
from agentcore.tools.function import FUNCTION_SPEC, look_up
from agentcore.tools.toolset import FilteredToolset, PrefixedToolset, RenamedToolset, Toolset

TOOLSET_ENTRY_POINTS: Final = "agentcore.toolsets"
"""The entry point group in which an installed distribution declares its toolsets."""

ToolsetFactory: TypeAlias = Callable[..., Toolset]
"""Makes a toolset of recorded parameters; the class of the toolset itself, most often."""


class ToolsetRegistry:
    """Factories of toolsets by name. The wrappers are always among them."""

    def __init__(self) -> None:
        self._factories: Factories[Toolset] = Factories(
            "toolset",
            lambda made: isinstance(made, Toolset),
            group=TOOLSET_ENTRY_POINTS,
            register="register_toolset",
            prefixed=self._prefixed,
            filtered=self._filtered,
            renamed=self._renamed,
        )

    def register(self, name: str, factory: ToolsetFactory) -> None:
        """Make toolsets recorded under this name with this factory.

        Raises:
            ValueError: the name has another factory.
        """
        self._factories.register(name, factory)

    def resolve(self, spec: ToolsetSpec) -> Toolset:
        """Make a recorded toolset again. It may import modules: call it in a worker thread where that must not block.

        Raises:
            ToolNotFound: it is not registered, or refused the parameters.
        """
        return self._factories.make(spec.name, spec.params)

    def _prefixed(self, toolset: JsonValue, prefix: str) -> Toolset:
        return PrefixedToolset(self._inner(toolset), prefix)

    def _filtered(self, toolset: JsonValue, keep: list[str]) -> Toolset:
        return FilteredToolset(self._inner(toolset), frozenset(keep))

    def _renamed(self, toolset: JsonValue, names: dict[str, str]) -> Toolset:
        return RenamedToolset(self._inner(toolset), names)

    def _inner(self, spec: JsonValue) -> Toolset:
        return self.resolve(ToolsetSpec.model_validate(spec))


# The one registry of the process, for programs that need no second one.
_TOOLSETS: Final = ToolsetRegistry()

register_toolset = _TOOLSETS.register
resolve_toolset = _TOOLSETS.resolve


ENTRY_POINTS: Final = "agentcore.tools"
"""The entry point group in which an installed distribution declares its tools."""

ToolFactory: TypeAlias = "Callable[..., AnyTool] | AnyTool"
"""A function that makes a tool of recorded parameters; a tool itself where there are none."""


class ToolRegistry:
    """Factories of tools by name. The built-in tools are always among them."""

    def __init__(self) -> None:
        self._factories: dict[str, ToolFactory] = {
            "finish": self._finish,
            "think": think_tool,
            "ask_user": ask_user,
            FUNCTION_SPEC: self._function,
        }
        self._allowed: set[str] = set()

    def register(self, name: str, factory: ToolFactory) -> None:
        """Make tools recorded under this name with this factory.

        Raises:
            ValueError: the name has another factory.
        """
        if self._factories.setdefault(name, factory) is not factory:
            raise ValueError(f"There is another tool factory under the name {name!r}. Choose another name.")

    def names(self) -> tuple[str, ...]:
        """Return the names of all factories: of this program, and of installed distributions."""
        declared = (point.name for point in entry_points_in(ENTRY_POINTS) if point.attr)
        return tuple(sorted({*self._factories, *declared} - {FUNCTION_SPEC}))

    def allow_imports(self, module: str) -> None:
        """Let logs name the tools in this module, and in those inside it, before they are imported."""
        self._allowed.add(module)

    def resolve(self, spec: ToolSpec) -> AnyTool:
        """Make a recorded tool again. It may import modules: call it in a worker thread where that must not block.

        Raises:
            ToolNotFound: it is not registered, may not be imported, or refused the parameters.
        """
        factory = self._factories.get(spec.name) or _declared(spec.name)
        if isinstance(factory, Tool):
            if spec.params:
                raise ToolNotFound(spec.name, f"it takes no parameters, and {spec.params!r} were recorded.")
            return cast("AnyTool", factory)
        try:
            made: Any = factory(**spec.params)
        except ToolNotFound:
            raise
        except (TypeError, ValueError, AgentcoreError) as error:
            raise ToolNotFound(spec.name, f"it refused its parameters {spec.params!r}: {error}") from error
        if not isinstance(made, Tool):
            raise ToolNotFound(spec.name, f"it made something that is not a tool: {made!r}.")
        return cast("AnyTool", made)

    def _function(self, **params: JsonValue) -> AnyTool:
        path = str(params.get("import"))
        module, _, name = path.partition(":")
        found = self._load(module, name, path)
        if not isinstance(found, Tool):
            raise ToolNotFound(name, f"what is at {path!r} is not a tool. Is it another program?")
        return cast("AnyTool", found)

    def _finish(self, output: Mapping[str, Any] | None = None) -> AnyTool:
        return finish_tool(None if output is None else OutputSchema(**output))

    def _load(self, module: str, name: str, path: str) -> Any:
        if module not in sys.modules and self._may_import(module):
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise ToolNotFound(name, f"{module!r} can't be imported: {error}") from error
        found = look_up(path)
        if found is None:
            raise ToolNotFound(name, _explain_absence(module, path))
        return found

    def _may_import(self, module: str) -> bool:
        declared = {point.module for point in entry_points_in(ENTRY_POINTS) if not point.attr}
        return any(module == name or module.startswith(f"{name}.") for name in self._allowed | declared)


def _explain_absence(module: str, path: str) -> str:
    if module == "__main__":
        return (
            "it was defined in the program that began the conversation, and this is another one, or another version. Pass the "
            "agent with its tools, or define the tool in a module that both programs import."
        )
    if module in sys.modules:
        return f"{path!r} is not there. Was it renamed? Pass the agent with its tools as they are now."
    return (
        f"{path!r} is not there. Import {module!r} first, or allow it with `allow_imports({module!r})`, if the log is to be "
        "trusted with that, or pass the agent with its tools."
    )


def _declared(name: str) -> ToolFactory:
    return load_declared(ENTRY_POINTS, name, register="register_tool", refuse=partial(ToolNotFound, name))


# The one registry of the process, for programs that need no second one.
_REGISTRY: Final = ToolRegistry()

register_tool = _REGISTRY.register
allow_imports = _REGISTRY.allow_imports
resolve_tool = _REGISTRY.resolve
tool_names = _REGISTRY.names
