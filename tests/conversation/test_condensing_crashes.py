"""A crash while the history is made shorter: it is the old one or the cut one, and the conversation goes on."""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest

from agentcore import Condensation, Conversation, FileStore, Summary, UsageEvent
from agentcore.agent import Agent
from agentcore.context import build_messages
from agentcore.llm import Features
from agentcore.messages import Message
from agentcore.record import ConversationState, read_log
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, crash_everywhere, say
from agentcore.tools import tool
from programs import start_python
from talks import FINISHED, events_of, scripted, talk

PROGRAM = Path(__file__).with_name("condensing_program.py")


@tool(resources=())
async def read(number: int) -> str:
    """Return many words."""
    return f"line {number} " * 400


def reader(steps: int, requests: list[Request]) -> Agent:
    """Make an agent that reads so many times after each message, and writes a summary where it is asked for one."""
    left = steps

    def reply(request: Request) -> ScriptLine:
        nonlocal left
        if request.messages[-1].text.startswith("(This is not from the user."):
            return say("## Done\nRead some.")
        requests.append(request)
        if left == 0:
            left = steps
            return say("done")
        left -= 1
        return call("read", number=left)

    llm = ScriptedLLM(reply, features=Features(context_window=8_000, max_output_tokens=1_000))
    return scripted(llm, read, condenser=Summary())


def check(state: ConversationState) -> None:
    """Check that what the model is shown is what the cuts have left, each of which was paid for."""
    cuts = events_of(state, Condensation)
    asked = [event for event in events_of(state, UsageEvent) if event.purpose == "condense"]
    assert len(cuts) <= len(asked) <= len(cuts) + 1
    shown = {event.id for event in state.shown}
    assert not shown & {forgotten for cut in cuts for forgotten in cut.forgotten}
    summaries = [message for message in build_messages(state) if "Read some." in message.text]
    assert len(summaries) == min(len(cuts), 1), "the newest summary stands for the earlier ones"


def check_calls(messages: list[Message]) -> None:
    """Check that each call of a request has its answer, and the other way round."""
    answered = [block for message in messages if message.role == "tool" for block in message.content]
    called = [call for message in messages for call in message.tool_calls]
    assert len(called) == len(answered)


async def go_on(conversation: Conversation, requests: list[Request]) -> None:
    """Work on until the history is cut once more."""
    before = len(events_of(conversation, Condensation))
    result = await conversation.run("again")
    assert result.status is FINISHED
    assert len(events_of(conversation, Condensation)) > before
    for request in requests:
        check_calls(list(request.messages))
    check(conversation.state)


@pytest.mark.slow
async def test_where_the_power_is_lost_the_history_is_the_old_one_or_the_cut_one(tmp_path: Path) -> None:
    outcomes: set[tuple[int, int]] = set()

    async def condense(store: FileStore, acknowledged: list[str]) -> None:
        async with talk(reader(3, []), store=store, id="a") as conversation:
            await conversation.run("the task")
            acknowledged.append("worked")
            assert await conversation.condense() is not None
            acknowledged.append("cut")

    for attempt in crash_everywhere(tmp_path):
        acknowledged: list[str] = []
        found = await attempt(condense, acknowledged)
        if "worked" not in acknowledged:
            continue
        state = await read_log(found.store, "a")
        check(state)
        cuts = events_of(state, Condensation)
        asked = [event for event in events_of(state, UsageEvent) if event.purpose == "condense"]
        assert cuts or "cut" not in acknowledged, "an acknowledged cut is lost"
        outcomes.add((len(asked), len(cuts)))
        requests: list[Request] = []
        async with talk(reader(8, requests), store=found.store, id="a") as again:
            assert list(build_messages(again.state)) == list(build_messages(state))
            await go_on(again, requests)
    assert outcomes == {(0, 0), (1, 0), (1, 1)}, "before the call of the model, before the cut, and after it"


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_after_a_kill_in_a_condensation_nothing_acknowledged_is_lost_and_it_goes_on(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    chance = random.Random(12)
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        await anyio.Path(folder).mkdir()
        printed: list[str] = []
        async with start_python(PROGRAM, folder, env=surroundings, cwd=folder) as program:
            for _ in range(chance.randint(1, 4)):
                while not printed or printed[-1] != "asked":
                    printed.append(await program.line())
                printed.append(await program.line())
            for _ in range(attempt):
                printed.append(await program.line())
            printed += await program.kill()
        store = FileStore(folder / "logs")
        state = await read_log(store, "victim")
        seen = [each for each in printed if each != "asked"]
        assert [event.id for event in state.events[: len(seen)]] == seen
        check(state)
        requests: list[Request] = []
        async with talk(reader(12, requests), store=store, id="victim") as conversation:
            await go_on(conversation, requests)
