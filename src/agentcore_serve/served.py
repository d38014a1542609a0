"""A conversation that is open on the server: its handle, and what the server knows of it besides."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio
from pydantic import JsonValue

from agentcore.conversation import Conversation, DeltaCursor
from agentcore.conversation.watch import HeadSignal
from agentcore.record import ConversationState
from agentcore.wire.requests import ConversationInfo
from agentcore_serve.describe import SearchText, describe
from agentcore_serve.jobs import JobBook
from agentcore_serve.opening import ClientParts
from agentcore_serve.records import ConversationRow


class Served:
    """One open conversation. The hub makes it, and ends it when it has rested for long."""

    def __init__(self, row: ConversationRow, conversation: Conversation, clock: Callable[[], float]) -> None:
        self.row = row
        self.conversation = conversation
        self._clock = clock
        self.used = clock()
        """When it was last asked for, or something happened in it."""
        self.watchers = 0
        """How many follow it."""
        self.requests = 0
        """How many requests are carried out in it."""
        self.text = SearchText()
        self.ended = anyio.Event()
        """Set when it is closed."""
        self.parts = ClientParts()
        """The parts of it that its clients run."""
        self.jobs = JobBook[JsonValue]()
        self.streams: Any = None
        """Those who watch it, where somebody does."""

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.row.id

    @property
    def owner(self) -> str:
        """The one whose keys reach it."""
        return self.row.owner

    @property
    def state(self) -> ConversationState:
        """The conversation's state."""
        return self.conversation.state

    @property
    def head_signal(self) -> HeadSignal:
        """The signal that the head moved."""
        return self.conversation.link.head_signal

    def deltas(self) -> DeltaCursor | None:
        """Follow what is being said, from now on."""
        return self.conversation.deltas()

    @property
    def is_at_rest(self) -> bool:
        """True while nothing works in it and nobody is asked by a run that goes on."""
        return not self.state.is_working and not self.state.is_asking

    @property
    def may_close(self) -> bool:
        """True while nothing works in it, and no request is about to begin something."""
        return self.is_at_rest and not self.requests

    def touch(self) -> None:
        """Note that it is used."""
        self.used = self._clock()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Keep it open while somebody follows it; all the same it is closed where room is needed."""
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1
            self.touch()

    @contextmanager
    def requested(self) -> Generator[None]:
        """Keep it open while a request is carried out in it, however long the disk or a model takes."""
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1
            self.touch()

    def info(self) -> ConversationInfo:
        """Return its description."""
        return describe(self.state, self.row)
