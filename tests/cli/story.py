"""A conversation in the making, for the transcripts: its events are written down as a test wants them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from agentcore.conversation import StreamDelta
from agentcore.display import (
    DisplayBlock,
)
from agentcore.events import Event, ObservationEvent, parse_event
from agentcore.messages import Message, TextBlock
from agentcore.tools import Observation
from described import answer_blocks, call_blocks

START = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)


class Story:
    """A conversation in the making."""

    def __init__(self) -> None:
        self.happenings: list[Event | StreamDelta] = []
        self._calls: dict[str, tuple[str, dict[str, Any]]] = {}
        self._reply = 0
        self.add("workspace_opened", workspace="local", spec={"root": "/p"})

    @property
    def events(self) -> list[Event]:
        """The part of it that is in the log."""
        return [each for each in self.happenings if not isinstance(each, StreamDelta)]

    def add(self, kind: str, **fields: Any) -> Event:
        """Add an event with a fixed id and time."""
        number = len(self.events) + 1
        when = (START + timedelta(seconds=number)).isoformat()
        event = parse_event(json.dumps({"id": f"ev_{number}", "timestamp": when, "kind": kind, **fields}, default=str))
        event = event.model_copy(update={"seq": number})
        self.happenings.append(event)
        return event

    def delta(self, type: str, text: str = "", offset: int = 0, **fields: Any) -> None:  # noqa: A002
        """Add a delta of the reply that comes next."""
        self.happenings.append(
            StreamDelta.model_validate(
                {"type": type, "reply_id": f"r{self._reply + 1}", "offset": offset, "text": text, **fields}
            )
        )

    def user(self, text: str) -> None:
        """Add a message of the user."""
        self.add("message", source="user", message=Message.user(text).model_dump(mode="json"))

    def agent(self, text: str) -> None:
        """Add a reply without calls."""
        self._reply += 1
        message = Message.assistant(text).model_dump(mode="json")
        self.add("message", source="agent", message=message, reply_id=f"r{self._reply}")

    def reply(self, *requested: tuple[str, dict[str, Any]], text: str = "", **fields: Any) -> list[str]:
        """Add a reply with calls; return their ids."""
        self._reply += 1
        before = [{"type": "text", "text": text}] if text else []
        ids: list[str] = []
        for name, arguments in requested:
            display = fields.get("display", [block.model_dump(mode="json") for block in call_blocks(name, arguments)])
            id_ = f"{name}-{len(self._calls)}"
            given: dict[str, Any] = {"before": before, **fields, "display": display}
            reply = f"r{self._reply}"
            self.add("action", id=id_, reply_id=reply, tool_name=name, call_id=id_, arguments=arguments, **given)
            self._calls[id_] = (name, arguments)
            ids.append(id_)
            before = []
        return ids

    def call(self, name: str, /, **arguments: Any) -> str:
        """Add a reply with one call, which starts; return its id."""
        (id_,) = self.reply((name, arguments))
        self.add("action_started", cause=id_)
        return id_

    def answer(self, id_: str, text: str = "", *blocks: DisplayBlock, **fields: Any) -> None:
        """Add the result of a call."""
        event = ObservationEvent(
            cause=id_, tool_name=self._calls[id_][0], call_id=id_, content=(TextBlock(text=text),), display=blocks
        )
        self.add(
            "observation", **{**event.model_dump(mode="json", exclude={"id", "seq", "timestamp", "kind"}), **fields}
        )

    def observe(self, id_: str, observation: Observation) -> None:
        """Add the result of a call as its tool describes it."""
        text = "\n".join(part for part in observation.to_content() if isinstance(part, str))
        name, arguments = self._calls[id_]
        blocks = answer_blocks(name, arguments, observation)
        self.answer(id_, text, *blocks, is_error=observation.is_error)

    def error(self, id_: str, text: str, **fields: Any) -> None:
        """Add the error of a call."""
        self.add("agent_error", cause=id_, tool_name=self._calls[id_][0], call_id=id_, error=text, **fields)

    def progress(self, id_: str, text: str) -> None:
        """Add a piece of a call's output."""
        self.delta("progress", text, action_id=id_, tool_name=self._calls[id_][0])
