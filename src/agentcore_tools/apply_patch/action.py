"""What is asked when a patch is applied."""

from __future__ import annotations

from agentcore.tools import Action

__all__ = ["ApplyPatchAction"]


class ApplyPatchAction(Action):
    """A patch."""

    patch: str
    """The whole patch, from `*** Begin Patch` to `*** End Patch`."""
