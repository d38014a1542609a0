"""What days of work cost under each condenser: size, the input that providers have not cached, and CPU.

A scripted agent reads files, plans and is given new tasks for thousands of steps; its conversation is closed and opened
again many times. The model counts what it is sent as a provider does: every token once, and apart those behind the longest
beginning that the request shares with an earlier one. A request above the window is refused.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from _report import Clock, Report, Settings, report

from agentcore import Agent, Conversation, Limits, MemoryStore, tool
from agentcore.condense import Amortised, Condenser, Masking, Pipeline, Structured, Summary, Window
from agentcore.errors import ContextWindowExceeded
from agentcore.events import Condensation, ConversationStateUpdateEvent
from agentcore.llm import Features
from agentcore.messages import Message
from agentcore.testing import ScriptedLLM, call, say
from agentcore.testing.script import Request, ScriptedReply
from agentcore.usage import Usage
from agentcore_tools import task_tracker_tool

WINDOW: Final = 60_000
OUTPUT: Final = 4_000
SITTING: Final = 250
"""Steps between two openings of the conversation; each begins with a message of the user."""
PLANNING: Final = 40
"""Every so many steps the agent writes its plan anew."""
_SUMMARY = (
    "## Goal\nTo round prices correctly.\n\n## Done\n"
    + "Looked at a file, and noted what it said about rounding. " * 40
)


@tool
async def read(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + f"def price_of_{len(path)}(order): return round(order.total, 2)  # see {path}\n" * 18


def tokens_of(message: Message) -> int:
    """Return the size of a message as this provider counts: not quite as it is estimated."""
    return len(message.model_dump_json()) // 5 + 3


@dataclass
class Provider:
    """Counts what it is sent, and plays the agent."""

    step: int = 0
    largest: int = 0
    uncached: int = 0
    breaks: int = 0
    """Requests of a step that do not begin with the request of the step before."""
    summaries: int = 0
    between: list[float] = field(default_factory=list[float])
    """The CPU, in seconds, from an answer to the next request."""
    _sizes: dict[int, tuple[Message, int]] = field(default_factory=dict[int, tuple[Message, int]])
    _last_step: list[Message] = field(default_factory=list[Message])
    _last: list[Message] = field(default_factory=list[Message])
    _answered: Clock | None = None

    def answer(self, request: Request) -> ScriptedReply | Exception:
        """Answer a request."""
        if self._answered is not None:
            self.between.append(self._answered.read().cpu)
        reply = self._answer(request)
        gc.collect(0)
        self._answered = Clock()
        return reply

    def _answer(self, request: Request) -> ScriptedReply | Exception:
        messages = list(request.messages)
        for message in messages:
            if id(message) not in self._sizes:
                self._sizes[id(message)] = message, tokens_of(message)
        size = sum(self._sizes[id(message)][1] for message in messages) + 400
        if size > WINDOW - OUTPUT:
            return ContextWindowExceeded(f"{size} tokens")
        self.largest = max(self.largest, size)
        shared = max(_shared(messages, self._last), _shared(messages, self._last_step))
        new = sum(self._sizes[id(message)][1] for message in messages[shared:])
        self.uncached += new
        self._last = messages
        usage = Usage(requests=1, input_tokens=size, output_tokens=50, cache_read_tokens=size - new)
        if "(This is not from the user." in messages[-1].text:
            self.summaries += 1
            return say('{"done": "Looked at files."}' if "JSON" in messages[-1].text else _SUMMARY, usage=usage)
        self.breaks += _shared(messages, self._last_step) < len(self._last_step)
        self._last_step = messages
        if len(self._sizes) > 4 * len(messages) + 1_000:
            self._sizes = {id(message): self._sizes[id(message)] for message in messages}
        self.step += 1
        line = self._act()
        return ScriptedReply(line.content, usage)

    def _act(self) -> ScriptedReply:
        if self.step % SITTING == 0:
            return say(f"Done with part {self.step // SITTING}.")
        if self.step % PLANNING == 0:
            tasks: Any = [
                {
                    "title": f"Look at part {number}",
                    "status": "done" if number % 2 else "todo",
                    "notes": f"step {self.step}",
                }
                for number in range(6)
            ]
            return call("task_tracker", command="plan", task_list=tasks)
        return call("read", path=f"src/part_{self.step % 97}/prices_{self.step}.py")


def _shared(messages: Sequence[Message], before: Sequence[Message]) -> int:
    """Return how many messages two requests begin with in common."""
    count = 0
    for one, other in zip(messages, before, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count


CONDENSERS: dict[str, Condenser] = {
    "summary": Summary(),
    "masking": Pipeline(Masking(), Window()),
    "window": Window(),
    "amortised": Amortised(replies=80),
    "structured": Structured({"type": "object", "properties": {"done": {"type": "string"}}}),
    "pipeline": Pipeline(Masking(tools=["read"]), Summary()),
}


def measure(settings: Settings) -> Report:
    """Measure each of them."""
    found = Report("What do 5,000 steps cost under each condenser?")
    anyio.run(compare, settings, found)
    return found


async def compare(settings: Settings, found: Report) -> None:
    """Let each condenser have its conversation."""
    uncached: dict[str, int] = {}
    for name, condenser in CONDENSERS.items():
        long = name in ("summary", "masking", "window")
        steps = settings.pick(5_000 if long else 1_000, SITTING)
        provider = await work(condenser, steps)
        uncached[name] = round(provider.uncached * 5_000 / steps)
        found.tell(f"{name}_largest_part_of_room", provider.largest / (WINDOW - OUTPUT))
        found.tell(f"{name}_uncached_tokens_per_step", provider.uncached / steps)
        if settings.tiny:
            continue
        first, last = provider.between[100:200], provider.between[-100:]
        found.hold(f"{name}_last_hundred_to_first_cpu_ratio", statistics.median(last) / statistics.median(first), 1.3)
    found.hold("summary_to_window_uncached_ratio", uncached["summary"] / uncached["window"], 0.7)


async def work(condenser: Condenser, steps: int) -> Provider:
    """Work so many steps in one conversation, and check that nothing was lost of what the log knows."""
    provider, store = Provider(), MemoryStore()
    llm = ScriptedLLM(provider.answer, record=False, features=Features(context_window=WINDOW, max_output_tokens=OUTPUT))
    agent = Agent(llm=llm, tools=(read, task_tracker_tool()), condenser=condenser)
    said: list[str] = []
    for sitting in range(steps // SITTING):
        async with Conversation(agent, store=store, id="long", limits=Limits(steps=None)) as conversation:
            said.append(f"Part {sitting}: prices below {sitting * 3} cents are to be left alone, and 'ö' is not 'o'.")
            result = await conversation.run(said[-1])
            state = conversation.state
            if result.status != "finished":
                raise AssertionError(
                    f"{condenser} ended with {result.status}: {state.status_code} {state.status_detail}"
                )
            check(condenser, conversation, said)
            cuts = sum(isinstance(event, Condensation) for event in state.events)
            if provider.breaks > cuts:
                raise AssertionError(
                    f"{condenser}: the prefix broke {provider.breaks} times, and there were {cuts} cuts"
                )
    return provider


def check(condenser: Condenser, conversation: Conversation, said: Sequence[str]) -> None:
    """Check that the tasks and the user's words are where the model reads them."""
    state = conversation.state
    failed = [
        e.update for e in state.events if isinstance(e, ConversationStateUpdateEvent) and e.update.fact == "context"
    ]
    if failed:
        raise AssertionError(f"{condenser}: {failed[0]}")
    if isinstance(condenser, Summary | Structured):
        shown = "\n".join(
            event.summary or "" if isinstance(event, Condensation) else getattr(event, "text", "")
            for event in state.shown
        )
        if missing := [words for words in said if words not in shown]:
            raise AssertionError(f"{condenser}: the words {missing[0]!r} are lost")


if __name__ == "__main__":
    report(measure)
