"""What is asked when files are searched for lines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentcore.tools import Action

__all__ = ["GrepAction"]


class GrepAction(Action):
    """A regular expression, and where to look for it."""

    pattern: str = Field(min_length=1)
    """A regular expression, as ripgrep takes it. It is matched line by line."""
    path: str = "."
    """The folder, or the one file, to search. A relative path starts in the workspace's folder."""
    include: str | None = None
    """A glob of the files to search, as in "*.{ts,tsx}" or "src/**/*.py"; without a slash it is about names."""
    ignore_case: bool = False
    """Whether capital and small letters are the same."""
    context: int = Field(default=0, ge=0, le=20)
    """How many lines to show above and below each that matches."""
    output: Literal["lines", "files", "counts"] = "lines"
    """What to show: the lines, only which files have some, or how many lines each file has."""
    everything: bool = False
    """Whether to search hidden files, and those that .gitignore leaves out, too."""
    limit: int = Field(default=200, ge=1, le=2_000)
    """After how many lines to stop; where lines are not shown, after how many files."""
