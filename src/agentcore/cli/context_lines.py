"""The lines of the live view on an agent's context and toolsets: what it read, and what was left out."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from agentcore.cli.console import DIM, print_text
from agentcore.cli.state_events import render_state_event
from agentcore.cli.text import one_line
from agentcore.events import (
    ContextAdded,
    ContextNotice,
    ConversationStateUpdateEvent,
    Event,
    SystemPromptEvent,
    ToolsetNotice,
)

_NOTICES = 3
"""The most notices to print in a row."""


class ContextLines:
    """Prints these lines of one conversation.

    Args:
        console: The console to print to.
        verbose: Whether to print every notice.
        make_room: Called before a line is printed.
    """

    def __init__(self, console: Console, *, verbose: bool, make_room: Callable[[], None]) -> None:
        self._console = console
        self._verbose = verbose
        self._make_room = make_room
        self._named: set[str] = set()
        self._left_out: list[ContextNotice | ToolsetNotice] = []
        """Those of the newest notices in a row."""

    def event(self, event: Event) -> None:
        """Print what there is to say of an event."""
        if isinstance(event, ConversationStateUpdateEvent) and isinstance(event.update, ContextNotice | ToolsetNotice):
            if event.update.code != "open" or self._verbose:  # it opened again
                self._notice(event, event.update)
            return
        self.end()
        if isinstance(event, ContextAdded | SystemPromptEvent):
            self._read(event)

    def end(self) -> None:
        """Print how many notices there are besides those that were printed."""
        more = [] if self._verbose else self._left_out[_NOTICES:]
        self._left_out = []
        if more:
            command = (
                "skills check"
                if any(notice.fact == "context" and notice.name == "skills" for notice in more)
                else "log show"
            )
            print_text(self._console, f"and {len(more)} more: agentcore {command}", DIM)

    def _notice(self, event: ConversationStateUpdateEvent, notice: ContextNotice | ToolsetNotice) -> None:
        if notice.code in ("left_out", "tool_left_out", "message"):
            self._left_out.append(notice)
            if len(self._left_out) > _NOTICES and not self._verbose:
                return
        self._make_room()
        print_text(self._console, render_state_event(event))

    def _read(self, event: SystemPromptEvent | ContextAdded) -> None:
        """Print what the model is shown: the project files of the prompt, each once, and all that is appended."""
        if isinstance(event, ContextAdded):
            read = [] if event.name == "date" else [_describe(event.name)]
            self._named.add(event.name)
        else:
            read = [_describe(name) for name in event.parts if name.startswith("file:") and name not in self._named]
            self._named.update(event.parts)
        if read:
            self._make_room()
            print_text(self._console, f"read {one_line(', '.join(read))}", DIM)


def _describe(name: str) -> str:
    kind, _, rest = name.partition(":")
    return rest if kind == "file" else f"skill {rest} (/{rest})" if kind == "skill" else name.replace(":", " ")
