"""What is asked when several files are read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agentcore.tools import Action

__all__ = ["ReadManyAction"]


class ReadManyAction(Action):
    """Files, and globs of files."""

    paths: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=100)
    """Files, or globs as in "src/**/*.py". A relative path starts in the workspace's folder."""
    everything: bool = False
    """Whether globs find hidden files, and those that .gitignore leaves out, too."""
