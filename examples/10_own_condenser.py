"""A condenser of your own: it decides what the model is not shown any more, here what a noisy tool said.

Run it: python examples/10_own_condenser.py. It needs no key and no network; a scripted model plays the agent's part.

What to look at:
- `condense` gets an outline: the items that are shown now, their sizes, what is protected, and the means to cut;
- an item is shown or forgotten as a whole, so a call never stands without its answer;
- `outline.forget(items, summary=...)` and `outline.mask(answers)` make the answer, and refuse what models do not accept;
- `record()` returns what a log keeps of it, so that a conversation can be resumed without passing the agent again;
- the log keeps everything: the `recall` tool of the agent finds what was forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from agentcore import Agent, Condenser, Conversation, Outline, tool
from agentcore.condense import CondenserSpec, register_condenser
from agentcore.events import Condensation
from agentcore.llm import Features
from agentcore.testing import ScriptedLLM, call, say


@dataclass(frozen=True)
class DropProbes:
    """Forgets all calls of one tool but the last few, as soon as the history takes half of its room."""

    tool: str
    keep: int = 2

    async def condense(self, outline: Outline) -> Condensation | None:
        if outline.reason == "soft" and outline.used < outline.room / 2:
            return None
        probes = [
            item
            for item in outline.items
            if item.observations and all(answer.tool_name == self.tool for answer in item.observations)
        ]
        old = probes[: -self.keep]
        return outline.forget(old, summary=f"({len(old)} calls of {self.tool} stood here.)") if old else None

    def record(self) -> CondenserSpec:
        return CondenserSpec(name="drop_probes", params={"tool": self.tool, "keep": self.keep})


# An installed package declares it as an entry point in the group agentcore.condensers.
register_condenser("drop_probes", DropProbes)


@tool(read_only=True)
async def probe(host: str) -> str:
    """Return the state of a host, at length."""
    return f"{host} is up. " + "All is well. " * 100


MODEL = ScriptedLLM(
    [
        *(call("probe", host=f"host-{number}") for number in range(8)),
        call("recall", query="host-0"),
        say("All hosts are up."),
    ],
    features=Features(context_window=6_000, max_output_tokens=1_000),
)


async def main() -> None:
    condenser: Condenser = DropProbes("probe")
    agent = Agent(llm=MODEL, tools=[probe], condenser=condenser)
    async with Conversation(agent, workspace=".") as conversation:
        result = await conversation.run("Look after all hosts.")
        for event in conversation.state.events:
            if isinstance(event, Condensation):
                print(f"cut: {event.tokens_before} tokens became {event.tokens_after}. {event.summary}")
        print(MODEL.requests[-1].answers[0][:120])
        print(result.text)


if __name__ == "__main__":
    anyio.run(main)
