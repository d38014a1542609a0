"""An agent with a tool: the smallest program that does something.

Run it: python examples/01_an_agent_with_a_tool.py. It needs no key and no network: a scripted model plays the agent's
part. With a key, put `LLM(model="openai/gpt-5-mini")` in its place.

What to look at:
- the tool's schema comes from its signature, its description from the docstring;
- a `ToolError` is an answer: the model reads it and corrects itself.
"""

from __future__ import annotations

import anyio

from agentcore import Agent, Conversation, tool
from agentcore.errors import ToolError
from agentcore.testing import ScriptedLLM, call, say

WEATHER = {"Rome": "sunny", "Oslo": "snow"}


@tool
async def weather(city: str) -> str:
    """Return the weather in a city."""
    if city not in WEATHER:
        raise ToolError(f"No weather is known for {city!r}. Known cities: {', '.join(WEATHER)}.")
    return WEATHER[city]


async def main() -> None:
    model = ScriptedLLM([call("weather", city="Roma"), call("weather", city="Rome"), say("It is sunny in Rome.")])
    async with Conversation(Agent(llm=model, tools=[weather])) as conversation:
        result = await conversation.run("How is the weather in Rome?")
        print(result.status, result.text)


anyio.run(main)
