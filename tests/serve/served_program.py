"""A hub in a process of its own, to be killed: it has one conversation, and prints what becomes of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio

from agentcore import Agent
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import tool
from agentcore.wire.requests import ConversationSpec
from hubs import ANN, serving


@tool(resources=())
async def wait() -> str:
    """Wait to be killed."""
    print("waiting", flush=True)
    await anyio.sleep_forever()
    return "never"


class SilentLLM(ScriptedLLM):
    """Is asked, and never answers."""

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        print("asked", flush=True)
        return _Silence()


class _Silence:
    async def __aenter__(self) -> None:
        await anyio.sleep_forever()

    async def __aexit__(self, *details: object) -> None:
        pass


async def main(folder: Path, life: str) -> None:
    """Live the life of a server: "begin" and "call" work until they are killed, "silent" waits for its model, "end" ends."""
    models = {
        "begin": ScriptedLLM([call("wait")]),
        "call": ScriptedLLM([call("wait")]),
        "end": ScriptedLLM([say("done")]),
    }
    agent = Agent(llm=models.get(life) or SilentLLM([]), tools=(wait,))
    async with serving(agent, folder, after_crash="pause" if life == "pause" else "continue") as hub:
        await hub.crashes_handled.wait()
        if life == "begin":
            served = await hub.create(ANN, ConversationSpec(), "c1")
            await served.conversation.start("go")
        served = await hub.open(ANN, "c1")
        async for _ in served.conversation.events(after=served.state.head - 1):
            if not served.state.is_working:
                break
        print(f"{served.state.status} {served.state.status_code}", flush=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
