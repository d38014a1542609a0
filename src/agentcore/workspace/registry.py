"""Which recorded workspaces can be made again here.

A log may come from anywhere, so a kind in it never decides what is imported. A workspace is made again only if a factory
is registered under its kind: by this program (`register_workspace`) or by an installed distribution (an entry point in
the group "agentcore.workspaces", as in `docker = "agentcore_sandbox.docker:DockerWorkspace.from_record"`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from agentcore._registry import load_declared
from agentcore.errors import AgentcoreError, WorkspaceError
from agentcore.workspace.protocol import Workspace
from agentcore.workspace.values import WorkspaceSpec

ENTRY_POINTS: Final = "agentcore.workspaces"
"""The entry point group in which an installed distribution declares its kinds of workspaces."""

WorkspaceFactory: TypeAlias = Callable[..., Workspace]
"""Makes a workspace of its recorded parameters. It does not open it."""


class WorkspaceRegistry:
    """Factories of workspaces by kind. "local" is always among them."""

    def __init__(self) -> None:
        self._factories: dict[str, WorkspaceFactory] = {"local": _restore_local}

    def register(self, kind: str, factory: WorkspaceFactory) -> None:
        """Make workspaces recorded as this kind with this factory.

        Raises:
            ValueError: the kind has another factory, or is "custom".
        """
        if kind == "custom" or self._factories.setdefault(kind, factory) is not factory:
            raise ValueError(f"The kind {kind!r} belongs to another workspace factory. Choose another name.")

    def resolve(self, spec: WorkspaceSpec) -> Workspace:
        """Make a recorded workspace again. It may import modules: call it in a worker thread where that must not block.

        Raises:
            WorkspaceError: its kind is not registered, or its factory refused the parameters.
        """
        if spec.kind == "custom":
            of_class = spec.params.get("class", "the program's own")
            raise WorkspaceError(f"its workspace (class {of_class}) has no record() from which it could be made again")

        def refuse(reason: str) -> WorkspaceError:
            return WorkspaceError(f"a workspace of the kind {spec.kind!r} cannot be made again: {reason}")

        factory = self._factories.get(spec.kind)
        if factory is None:
            factory = load_declared(ENTRY_POINTS, spec.kind, register="register_workspace", refuse=refuse)
        try:
            return factory(**spec.params)
        except (TypeError, ValueError, AgentcoreError) as error:
            raise refuse(str(error)) from error


def _restore_local(root: str, inherit_env: bool | list[str] = True, env: list[str] | None = None) -> Workspace:
    if env:
        names = ", ".join(env)
        raise WorkspaceError(f"the values of its variables ({names}) are not recorded; the folder was {root}")
    from agentcore.workspace.local import LocalWorkspace  # noqa: PLC0415 # off the start-up path, as in the index

    return LocalWorkspace(root, inherit_env=tuple(inherit_env) if isinstance(inherit_env, list) else inherit_env)


# The one registry of the process, for programs that need no second one.
_REGISTRY: Final = WorkspaceRegistry()

register_workspace = _REGISTRY.register
resolve_workspace = _REGISTRY.resolve
