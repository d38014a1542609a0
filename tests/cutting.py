"""Condensers that do what a test says, and models with a small window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from anyio.lowlevel import checkpoint

from agentcore import Conversation, tool
from agentcore.condense import CondenserSpec, Outline
from agentcore.events import (
    Condensation,
    ContextNotice,
    ConversationStateUpdateEvent,
)
from agentcore.llm import Features
from agentcore.testing import ScriptedLLM, call, say
from agentcore.testing.script import Request, ScriptLine
from talks import events_of

SMALL = Features(context_window=10_000, max_output_tokens=2_000)
"""A model with room for 8,000 tokens."""


@tool
async def read(size: int) -> str:
    """Return so many words."""
    return "word " * size


def model(
    script: Sequence[ScriptLine] | Callable[[Request], ScriptLine], features: Features | None = SMALL
) -> ScriptedLLM:
    return ScriptedLLM(script, features=features)


@dataclass(frozen=True)
class Own:
    """A condenser that does what a test says, and remembers what it was asked."""

    do: Callable[[Outline], Any]
    seen: list[Outline] = field(default_factory=list[Outline])

    async def condense(self, outline: Outline) -> Condensation | None:
        self.seen.append(outline)
        await checkpoint()
        answer = self.do(outline)
        return await answer if hasattr(answer, "__await__") else answer

    def record(self) -> CondenserSpec | None:
        return None


def nothing(outline: Outline) -> None:
    del outline


def notices(conversation: Conversation) -> list[ContextNotice]:
    facts = [event.update for event in events_of(conversation, ConversationStateUpdateEvent)]
    return [fact for fact in facts if isinstance(fact, ContextNotice)]


def working(count: int, size: int = 800) -> list[ScriptLine]:
    return [*(call("read", size=size + number) for number in range(count)), say("done")]
