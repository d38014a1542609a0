"""What a terminal is asked to do."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agentcore.tools import Action

__all__ = ["TerminalAction"]


class TerminalAction(Action):
    """A command, something to type, or a look at what runs."""

    command: str
    """What bash is to run, in one line or several. Empty: wait for what runs, and see what it has written since. With
    is_input: what to type into it, followed by Enter, or one key: C-c, C-d, C-z (any letter), ENTER, TAB, ESC, BS, UP, DOWN,
    LEFT, RIGHT, HOME, END, PGUP, PGDN."""
    is_input: bool = False
    """Type the command into the program that runs, instead of running it."""
    timeout: Annotated[float, Field(ge=0)] | None = None
    """Answer after so many seconds at the latest, with what there is; the command runs on. Without it, the answer comes when
    nothing new was written for a while."""
    session: Annotated[str, Field(min_length=1, max_length=64)] = "default"
    """Which shell. Each name is one of its own, started when it is first used: keep a server running in one, and work in
    another."""
    reset: bool = False
    """End the shell with all that runs in it, and start a new one first."""
