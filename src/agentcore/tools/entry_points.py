"""Factories that installed distributions declare by name: the one way in which a name in a log may lead to an import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentcore.errors import ToolNotFound

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

__all__ = ["entry_points_in", "load_declared"]


def entry_points_in(group: str) -> EntryPoints:
    """Return the entry points of a group."""
    # Here because importing it takes a fifth as long as importing pydantic, and few programs resolve what is not registered.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return entry_points(group=group)


def load_declared(group: str, name: str, *, what: str, register: str) -> Any:
    """Load the factory that an installed distribution declares under the name.

    Args:
        group: The entry point group.
        name: The name that is recorded.
        what: "tool" or "toolset", for the error.
        register: The function by which a program registers a factory itself, for the error.

    Raises:
        ToolNotFound: none declares it, several do, or it can't be imported.
    """
    points = {point.value: point for point in entry_points_in(group).select(name=name) if point.attr}
    if not points:
        reason = f"no factory has this name. Register it with `{register}`, or install the package it is from."
        raise ToolNotFound(name, reason, what=what)
    if len(points) > 1:
        reason = f"several installed packages declare it: {', '.join(sorted(points))}."
        raise ToolNotFound(name, reason, what=what)
    (point,) = points.values()
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        reason = f"{point.value!r}, where it should be, can't be imported: {error}"
        raise ToolNotFound(name, reason, what=what) from error
