"""What is asked when files are looked for by their paths."""

from __future__ import annotations

from pydantic import Field

from agentcore.tools import Action

__all__ = ["GlobAction"]


class GlobAction(Action):
    """A glob, and where to look."""

    pattern: str = Field(min_length=1)
    """As in "**/*.py", "src/**/test_*.{ts,tsx}" or "*.md"; without a slash it is about names, in whatever folder."""
    path: str = "."
    """The folder to look in. A relative path starts in the workspace's folder."""
    everything: bool = False
    """Whether to look at hidden files, and at those that .gitignore leaves out, too."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """How many files to show at most."""
