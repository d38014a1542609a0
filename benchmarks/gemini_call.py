"""What a call of Gemini costs besides the model: over plain HTTP and through litellm.

As `model_call` does it for the Chat Completions interface: the provider answers at once, from another process, and the side
that the others are compared with is httpx, sending the same bytes and making nothing of what comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.util import find_spec

import anyio
import httpx
from _agents import agent_tools
from _provider import provider
from _report import Report, Settings, report
from model_call import KEY, SIZES, ask, history, take_turns

from agentcore import LLM
from agentcore.llm import CallContext
from agentcore.llm.catalog import model_info
from agentcore.llm.native.gemini import GeminiWire
from agentcore.llm.native.wire import Call

MODEL = "gemini/gemini-2.5-flash"


def measure(settings: Settings) -> Report:
    """Measure single calls with histories of three lengths, streamed and not."""
    found = Report("What does a call of Gemini cost, and what do more messages add?")
    anyio.run(measure_calls, settings, found)
    return found


async def measure_calls(settings: Settings, found: Report) -> None:
    """Compare one call with bare HTTP and with litellm, with a history that is sent again and again."""
    rounds, few = settings.pick(150, 2), settings.pick(20, 1)
    tools = [tool.schema for tool in agent_tools()]
    grown: dict[str, dict[int, float]] = {}
    with provider() as url:
        base_url = url.replace("/v1", "/v1beta")
        llm = LLM(model=MODEL, base_url=base_url, api_key=KEY, route="native")
        through = LLM(model=MODEL, base_url=base_url, api_key=KEY, route="litellm")
        for size in SIZES:
            messages = history(size)
            for streamed in (False, True):
                wire = GeminiWire(llm, streamed)
                info = await model_info(llm)
                body = wire.body(Call(llm, messages, tools, CallContext(), info.features, streamed))
                async with httpx.AsyncClient() as client:
                    sides: dict[str, tuple[int, Callable[[], Awaitable[object]]]] = {
                        "bare": (rounds, lambda: bare(client, wire.url(base_url), wire.headers(KEY), body)),  # noqa: B023 - called in this round
                        "native": (rounds, lambda: ask(llm, messages, tools, streamed=streamed)),  # noqa: B023
                    }
                    if not settings.tiny and find_spec("litellm") is not None:
                        sides["litellm"] = (few, lambda: ask(through, messages, tools, streamed=streamed))  # noqa: B023
                    spent = await take_turns(sides)
                how = "streamed" if streamed else "whole"
                for side, cpu in spent.items():
                    grown.setdefault(f"{side}_{how}", {})[size] = cpu
                    found.tell(f"{side}_{how}_{size}_messages_cpu_ms", cpu * 1e3)
                if "litellm" in spent:
                    found.tell(f"litellm_{how}_{size}_to_native_ratio", spent["litellm"] / spent["native"])
                found.hold(f"native_{how}_{size}_messages_to_bare_ratio", spent["native"] / spent["bare"], 1.5)
    for side_and_how, by_size in grown.items():
        found.tell(f"{side_and_how}_growth_cpu_ms", (by_size[SIZES[-1]] - by_size[SIZES[0]]) * 1e3)


async def bare(client: httpx.AsyncClient, url: str, headers: dict[str, str], body: bytes) -> bytes:
    """Send and read."""
    async with client.stream("POST", url, content=body, headers=headers) as response:
        return b"".join([chunk async for chunk in response.aiter_bytes()])


if __name__ == "__main__":
    report(measure)
