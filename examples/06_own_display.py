"""A display of your own: how people see the calls and the answers of a tool.

Run it: python examples/06_own_display.py. It needs no key and no network; a scripted model plays the agent's part.

What to look at:
- the model reads the tool's answer, and never a block;
- the blocks are in the log, and any program can draw them: the command line does (`agentcore log show`), and so does
  the last function here.
"""

from collections.abc import Sequence
from typing import Any

import anyio

from agentcore import ActionEvent, Agent, Conversation, ObservationEvent, tool
from agentcore.display import DisplayBlock, MarkdownBlock, TableBlock, code_span, plain_text
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import JsonObservation

STOCK = {"apple": 40, "bread": 12, "pear": 7}


def show_call(action: Any) -> Sequence[DisplayBlock]:
    """Show a call on one line, behind the tool's name."""
    return [MarkdownBlock(text=f"fewer than {code_span(str(action.limit))} left", place="heading")]


def show_answer(_action: Any, observation: JsonObservation) -> Sequence[DisplayBlock]:
    """Show an answer as a table; the model reads the same as JSON."""
    assert isinstance(observation.value, dict)
    rows = tuple((name, str(count)) for name, count in observation.value.items())
    return [
        MarkdownBlock(text=f"{len(rows)} of {len(STOCK)} goods", place="heading"),
        TableBlock(columns=("what", "left"), rows=rows),
    ]


@tool(read_only=True, display_call=show_call, display_answer=show_answer)
async def find_scarce(limit: int) -> dict[str, int]:
    """Find the goods of which fewer than `limit` are left."""
    return {name: count for name, count in STOCK.items() if count < limit}


def draw(event: ActionEvent | ObservationEvent) -> None:
    """Draw an event's blocks in the plainest way there is."""
    print(f"{event.kind} of {event.tool_name}:")
    for block in event.display:
        print("  " + plain_text(block).replace("\n", "\n  "))


async def main() -> None:
    """Run it."""
    model = ScriptedLLM([call("find_scarce", limit=20), say("Order bread and pears.")])
    async with Conversation(Agent(llm=model, tools=[find_scarce])) as conversation:
        result = await conversation.run("What do we have to order?")
        for event in conversation.state.events:
            if isinstance(event, ActionEvent | ObservationEvent):
                draw(event)
        print(result.text)


if __name__ == "__main__":
    anyio.run(main)
