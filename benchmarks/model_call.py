"""What a call of a model costs besides the model: over plain HTTP, through litellm, with the openai package.

The provider answers at once, from another process. The side that the others are compared with is httpx, sending the same
bytes and reading the same bytes, and making nothing of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import anyio
import httpx
from _agents import ANSWER, THOUGHT, agent_tools
from _provider import provider
from _report import Clock, Report, Settings, median, report

from agentcore import LLM, Agent, Host, Message
from agentcore.llm import CallContext
from agentcore.llm.catalog import model_info
from agentcore.llm.native.chat import ChatWire
from agentcore.llm.native.wire import Call
from agentcore.llm.providers import HOSTS
from agentcore.messages import TextBlock, ToolCallBlock, ToolResultBlock

KEY = "sk-none"
MODEL = "openai/gpt-4o-mini"
SIZES = (2, 100, 400)
LATENCY = 0.05
TURNS = 10
RUN = 10
"""Calls of one side before it is another's turn."""


def measure(settings: Settings) -> Report:
    """Measure single calls, then many conversations at once."""
    found = Report("What does a call of a model cost, and how many turns does a second of CPU hold?")
    anyio.run(measure_calls, settings, found)
    for number in (1, 10, 100, 500) if not settings.tiny else (2,):
        for what in ("calls", "conversations"):
            native = elsewhere(what, "native", number)
            found.tell(f"native_{number}_{what}_turns_per_cpu_s", native["turns"] / native["cpu"])
            found.tell(f"native_{number}_{what}_wall_s", native["wall"])
            if find_spec("litellm") is None or settings.tiny:
                continue
            other = elsewhere(what, "litellm", number)
            found.tell(f"litellm_{number}_{what}_turns_per_cpu_s", other["turns"] / other["cpu"])
            found.tell(f"litellm_{number}_{what}_wall_s", other["wall"])
            found.hold(f"native_{number}_{what}_to_litellm_cpu_ratio", native["cpu"] / other["cpu"], 0.1)
    return found


def history(messages: int) -> list[Message]:
    """Make a conversation of so many messages: a question, then calls and answers in turn."""
    made = [Message.system("You are an agent that mends programs."), Message.user("Find where the price is rounded.")]
    for number in range((messages - 2) // 2):
        call = ToolCallBlock(id=f"call_{number}", name="read_part", arguments={"path": "a.py", "first": 1, "last": 9})
        made.append(Message.assistant(TextBlock(text=THOUGHT), call))
        answer = ToolResultBlock(call_id=call.id, name="read_part", content=(TextBlock(text=ANSWER),))
        made.append(Message(role="tool", content=(answer,)))
    return made


async def measure_calls(settings: Settings, found: Report) -> None:
    """Compare one call with bare HTTP, streamed and not, with a history that is sent again and again."""
    rounds = settings.pick(150, 2)
    few = settings.pick(20, 1)
    tools = [tool.schema for tool in agent_tools()]
    grown: dict[str, dict[int, float]] = {}
    with provider() as url:
        llm = LLM(model=MODEL, base_url=url, api_key=KEY, route="native")
        for size in SIZES:
            messages = history(size)
            for streamed in (False, True):
                info = await model_info(llm)
                call = Call(llm, messages, tools, CallContext(), info.features, streamed)
                body = ChatWire(HOSTS["openai"]).body(call)
                async with httpx.AsyncClient() as client:
                    sides: dict[str, tuple[int, Callable[[], Awaitable[object]]]] = {
                        "bare": (rounds, lambda: bare(client, url, body)),  # noqa: B023 - called in this round
                        "native": (rounds, lambda: ask(llm, messages, tools, streamed=streamed)),  # noqa: B023
                    }
                    if not settings.tiny and find_spec("litellm") is not None:
                        through = LLM(model=MODEL, base_url=url, api_key=KEY, route="litellm")
                        sides["litellm"] = (few, lambda: ask(through, messages, tools, streamed=streamed))  # noqa: B023
                    if not settings.tiny and find_spec("openai") is not None:
                        package = await open_openai(url)
                        sides["openai"] = (few, lambda: ask_openai(package, json.loads(body)))  # noqa: B023
                    spent = await take_turns(sides)
                how = "streamed" if streamed else "whole"
                for side, cpu in spent.items():
                    grown.setdefault(f"{side}_{how}", {})[size] = cpu
                    found.tell(f"{side}_{how}_{size}_messages_cpu_ms", cpu * 1e3)
                    if side not in {"bare", "native"}:
                        found.tell(f"{side}_{how}_{size}_to_native_ratio", cpu / spent["native"])
                found.hold(f"native_{how}_{size}_messages_to_bare_ratio", spent["native"] / spent["bare"], 1.5)
    for side_and_how, by_size in grown.items():
        found.tell(f"{side_and_how}_growth_cpu_ms", (by_size[SIZES[-1]] - by_size[SIZES[0]]) * 1e3)


async def take_turns(sides: dict[str, tuple[int, Callable[[], Awaitable[object]]]]) -> dict[str, float]:
    """Give the CPU of the middle call of each side.

    They take turns in runs of calls: one call after another side's finds the processor's caches full of what is not its.
    """
    spent: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(max(rounds for rounds, _ in sides.values()) // RUN + 1):
        for side, (rounds, call) in sides.items():
            if len(spent[side]) >= rounds:
                continue
            for _ in range(3):
                await call()
            for _ in range(RUN):
                clock = Clock()
                await call()
                spent[side].append(clock.read().cpu)
    return {side: median(each) for side, each in spent.items()}


async def bare(client: httpx.AsyncClient, url: str, body: bytes) -> bytes:
    """Send and read."""
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    async with client.stream("POST", f"{url}/chat/completions", content=body, headers=headers) as response:
        return b"".join([chunk async for chunk in response.aiter_bytes()])


async def ask(llm: LLM, messages: Sequence[Message], tools: Sequence[Any], *, streamed: bool) -> None:
    """Call a model."""
    if not streamed:
        await llm.complete(messages, tools)
        return
    async with llm.stream(messages, tools) as deltas:
        async for _ in deltas:
            pass


async def open_openai(url: str) -> Any:
    """Make a client of the openai package; importing it takes a second."""
    import openai  # noqa: PLC0415 - one of the sides, where it is installed

    return openai.AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0)


async def ask_openai(client: Any, body: dict[str, Any]) -> None:
    """Call a model with the openai package."""
    answer = await client.chat.completions.create(**body)
    if body.get("stream"):
        async for _ in answer:
            pass


def elsewhere(what: str, route: str, number: int) -> dict[str, float]:
    """Measure many at once in a fresh process."""
    command = [sys.executable, os.path.abspath(__file__), "--here", what, route, str(number)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout.splitlines()[-1])


async def here(what: str, route: str, number: int) -> dict[str, float]:
    """Do so many at once, each of so many turns: calls of a model alone, or an agent's conversations."""
    with provider(latency=LATENCY, turns=TURNS - 1) as url:
        llm = LLM.model_validate({"model": MODEL, "base_url": url, "api_key": KEY, "route": route})
        async with Host() as host:
            take = take_calls if what == "calls" else partial(take_conversation, host)
            await take(llm)
            clock = Clock()
            async with anyio.create_task_group() as tasks:
                for _ in range(number):
                    tasks.start_soon(take, llm)
            spent = clock.read()
    return {"cpu": spent.cpu, "wall": spent.wall, "turns": number * TURNS}


async def take_calls(llm: LLM) -> None:
    """Call the model again and again, with what it said and an answer to it."""
    tools = [tool.schema for tool in agent_tools()]
    messages = history(2)
    for _ in range(TURNS):
        async with llm.stream(messages, tools) as deltas:
            async for _ in deltas:
                pass
        messages.append(deltas.reply.message)
        for call in deltas.reply.message.tool_calls:
            answer = ToolResultBlock(call_id=call.id, name=call.name, content=(TextBlock(text=ANSWER),))
            messages.append(Message(role="tool", content=(answer,)))


async def take_conversation(host: Host, llm: LLM) -> None:
    """Let an agent work."""
    # It makes the same call again and again, which an agent is otherwise stopped for.
    conversation = await host.open(Agent(llm=llm, tools=agent_tools(), stuck=None))
    result = await conversation.run("Find where the price is rounded.")
    assert result.steps == TURNS
    await conversation.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(anyio.run(here, sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        report(measure)
