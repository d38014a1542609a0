"""Factories by name, by which what a log names is made again.

A log may come from anywhere, so a name in it never decides what is imported: a factory is registered by this program, or
declared by an installed distribution as an entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agentcore.errors import AgentcoreError, ToolNotFound

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

MadeT = TypeVar("MadeT")


def entry_points_in(group: str) -> EntryPoints:
    """Return the entry points of a group."""
    # Here because importing it takes a fifth as long as importing pydantic, and few programs resolve what is not registered.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return entry_points(group=group)


def load_declared(group: str, name: str, *, register: str, refuse: Callable[[str], Exception]) -> Any:
    """Load the factory that an installed distribution declares under the name.

    Args:
        group: The entry point group.
        name: The name that is recorded.
        register: The function by which a program registers a factory itself, for the error.
        refuse: Makes the error of a reason: none declares it, several do, or it can't be imported.
    """
    points = {point.value: point for point in entry_points_in(group).select(name=name) if point.attr}
    if not points:
        raise refuse(f"no factory has this name. Register it with `{register}`, or install the package it is from.")
    if len(points) > 1:
        raise refuse(f"several installed packages declare it: {', '.join(sorted(points))}.")
    (point,) = points.values()
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise refuse(f"{point.value!r}, where it should be, can't be imported: {error}") from error


class Factories(Generic[MadeT]):
    """The factories of one kind of thing."""

    def __init__(
        self,
        what: str,
        accepts: Callable[[object], bool],
        *,
        group: str,
        register: str,
        **built_in: Callable[..., MadeT],
    ) -> None:
        """Take the kind.

        Args:
            what: Its name in errors, as in "toolset".
            accepts: Returns whether something is of the kind.
            group: The entry point group in which distributions declare factories.
            register: The function by which a program registers one, for errors.
            **built_in: The factories that are always there.
        """
        self._what = what
        self._accepts = accepts
        self._group = group
        self._register = register
        self._factories = dict(built_in)

    def register(self, name: str, factory: Callable[..., MadeT]) -> None:
        """Make what is recorded under this name with this factory.

        Raises:
            ValueError: the name has another factory.
        """
        if self._factories.setdefault(name, factory) is not factory:
            raise ValueError(f"There is another {self._what} factory under the name {name!r}. Choose another name.")

    def make(self, name: str, params: Mapping[str, Any]) -> MadeT:
        """Make what was recorded.

        Raises:
            ToolNotFound: it is not registered, or refused the parameters.
        """
        factory = self._factories.get(name)
        if factory is None:
            refuse = partial(ToolNotFound, name, what=self._what)
            factory = load_declared(self._group, name, register=self._register, refuse=refuse)
        try:
            made: Any = factory(**params)
        except ToolNotFound:
            raise
        except (TypeError, ValueError, AgentcoreError) as error:
            raise ToolNotFound(name, f"it refused its parameters {params!r}: {error}", what=self._what) from error
        if isinstance(made, type) or not self._accepts(made):
            raise ToolNotFound(name, f"what was made is not a {self._what} but {made!r}.", what=self._what)
        return made
