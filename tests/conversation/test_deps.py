"""Values of the program's own: tools, toolsets and checks are handed them, and no log has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from agentcore import (
    ActionEvent,
    Assessment,
    Conversation,
    FileStore,
    Host,
    ObservationEvent,
    ToolContext,
    tool,
)
from agentcore.errors import ConversationError
from agentcore.security import CheckContext
from agentcore.testing import call, calls, say
from live_toolset import Service, raw
from talks import events_of, scripted


@dataclass
class Deps:
    user: str


class Watching:
    """A check that notes what it is asked with."""

    name = "watching"
    timeout = 1.0

    def __init__(self) -> None:
        self.seen: list[object] = []

    def assess(self, action: ActionEvent, context: CheckContext) -> Assessment | None:
        del action
        self.seen.append(context.deps)
        return None


@tool
async def typed(ctx: ToolContext[Deps]) -> str:
    """Name the user."""
    return ctx.deps.user


@tool
def plain(ctx: ToolContext | None) -> str:
    """Name the user."""
    assert ctx is not None
    return str(ctx.deps.user)


@tool
async def optional(ctx: ToolContext[Deps] | None = None) -> str:
    """Name the user."""
    assert ctx is not None
    return ctx.deps.user


async def test_tools_toolsets_and_checks_have_what_the_program_passed_and_no_log_has_it(tmp_path: Path) -> None:
    deps, service, check = Deps("Ada-4711"), Service("service", raw("search")), Watching()
    agent = scripted(
        [calls(call("typed"), call("plain"), call("optional")), say("done")], typed, plain, optional, service
    )
    async with Conversation(agent, ".", store=FileStore(tmp_path), id="a", confirm=[check], deps=deps) as conversation:
        await conversation.run("go")
        assert [event.text for event in events_of(conversation, ObservationEvent)] == ["Ada-4711"] * 3
    assert [context.deps for context in service.contexts] == [deps]
    assert check.seen == [deps] * 3
    kept = await anyio.Path(tmp_path / "a" / "events.jsonl").read_text()
    assert kept.count("Ada-4711") == 3  # the answers of the tools
    assert "Deps" not in kept
    assert not typed.schema.parameters["properties"]
    assert not plain.schema.parameters["properties"]
    assert not optional.schema.parameters["properties"]


async def test_a_conversation_without_deps_has_none_of_them() -> None:
    @tool
    async def look(ctx: ToolContext) -> str:
        """Look."""
        return repr(ctx.deps)

    async with Conversation(scripted([call("look"), say("done")], look)) as conversation:
        await conversation.run("go")
        assert events_of(conversation, ObservationEvent)[0].text == "None"


async def test_a_host_passes_them_on_and_refuses_others_for_what_is_open() -> None:
    deps = Deps("Ada")
    async with Host() as host:
        conversation = await host.open(scripted([call("typed"), say("done")], typed), id="a", deps=deps)
        await conversation.run("go")
        assert events_of(conversation, ObservationEvent)[0].text == "Ada"
        assert await host.open(None, id="a", deps=deps) is conversation
        assert await host.open(None, id="a") is conversation
        with pytest.raises(ConversationError, match="another deps"):
            await host.open(None, id="a", deps=Deps("Ada"))
