"""Follow the events: callbacks for what happens, by reading the log.

Run it: python examples/04_follow_events.py. It needs no key and no network; a scripted model plays the agent's part.

What to look at:
- `events()` yields what is there, then each event as it comes, none twice and none left out; a slow reader slows nothing down;
- a reader that stops, or comes back with `after=event.seq`, needs no clean-up;
- `deltas()` is the other stream: pieces of replies as they are written, lossy, and not in the log.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from agentcore import ActionEvent, Agent, Conversation, MessageEvent, ObservationEvent, UsageEvent, tool
from agentcore.events import Event
from agentcore.testing import ScriptedLLM, call, say


@tool(resources=())
async def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def on_call(event: ActionEvent) -> None:
    print(f"call    {event.tool_name} {event.arguments}")


def on_answer(event: ObservationEvent) -> None:
    print(f"answer  {event.text}")


def on_message(event: MessageEvent) -> None:
    print(f"{event.source:7} {event.text}")


def on_usage(event: UsageEvent) -> None:
    print(f"used    {event.usage.total_tokens} tokens")


CALLBACKS: dict[type[Event], Callable[..., None]] = {
    ActionEvent: on_call,
    ObservationEvent: on_answer,
    MessageEvent: on_message,
    UsageEvent: on_usage,
}


async def follow(conversation: Conversation) -> None:
    """Call the callback of each event, until the conversation is closed."""
    async for event in conversation.events():
        if (callback := CALLBACKS.get(type(event))) is not None:
            callback(event)


async def main() -> None:
    model = ScriptedLLM([call("count_words", text="one two three"), say("Three words.")])
    agent = Agent(llm=model, tools=[count_words])
    # Leaving the conversation, which is entered last, ends the follower after the last event.
    async with anyio.create_task_group() as tasks, Conversation(agent) as conversation:
        tasks.start_soon(follow, conversation)
        await conversation.run("How many words are in 'one two three'?")


anyio.run(main)
