"""Recall: searching and reading what the model is not shown any more."""

from __future__ import annotations

from typing import Any

import anyio

from agentcore import Conversation, tool
from agentcore.condense import Masking, Window
from agentcore.context import build_messages
from agentcore.llm import Features
from agentcore.testing import ScriptedLLM, call, say
from agentcore.testing.script import Request, ScriptLine
from talks import error_of, scripted, talk

SMALL = Features(context_window=10_000, max_output_tokens=2_000)
PAGES = {
    1: "The gateway listens on port 7443.",
    2: "Backups run at night.",
    3: "The gateway is written in Rust.",
    7: "An octopus.",
}


@tool
async def page(number: int) -> str:
    """Return a page."""
    return PAGES.get(number, f"Page {number} is blank.") + " filler" * 500


class Asking:
    """An agent that reads pages, and then calls `recall` with what a test asks for."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.answers: list[str] = []

    def __call__(self, request: Request) -> ScriptLine:
        if request.last.role == "tool":
            self.answers.append(request.answers[-1])
        if self.calls:
            return call("recall", **self.calls.pop(0))
        return say("fine")


async def recalled(conversation: Conversation, asking: Asking, **arguments: Any) -> str:
    asking.calls.append(arguments)
    await conversation.run("recall it")
    return asking.answers[-1]


def reading(asking: Asking, pages: int) -> ScriptedLLM:
    numbers = iter(range(1, pages + 1))

    def answer(request: Request) -> ScriptLine:
        number = next(numbers, None)
        return asking(request) if number is None else call("page", number=number)

    return ScriptedLLM(answer, features=SMALL)


async def test_what_was_forgotten_is_found_and_read() -> None:
    asking = Asking()
    async with talk(scripted(reading(asking, 9), page, condenser=Window())) as conversation:
        await conversation.run("read on")
        assert "7443" not in "".join(message.text for message in build_messages(conversation.state))
        found = await recalled(conversation, asking, query="gateway port")
        first, best, second, *_ = found.splitlines()
        assert first.startswith("2 of ")
        assert "answer of page: The gateway listens on port 7443." in best
        assert "written in Rust" in second
        seq = int(best.split("]")[0].removeprefix("[seq "))
        whole = await recalled(conversation, asking, seq=seq)
        assert whole.startswith(f"[seq {seq}] answer of page:\nThe gateway listens on port 7443. filler")
        assert whole.count("filler") == 500
        two = await recalled(conversation, asking, seq=seq, count=2)
        assert two.count("[seq ") == 2
        assert "call of page:" in two


async def test_a_pattern_is_searched_newest_first_and_cannot_hang() -> None:
    asking = Asking()
    async with talk(scripted(reading(asking, 9), page, condenser=Window())) as conversation:
        await conversation.run("read on")
        found = await recalled(conversation, asking, query=r"gateway (is|listens)", regex=True, limit=1)
        assert "written in Rust" in found
        assert "7443" not in found
        with anyio.fail_after(20):
            assert "0 of " in await recalled(conversation, asking, query=r"( f*i*l*l*e*r*)*$x", regex=True)
        for pattern, reason in (
            (r"(?=a)b", "look-around, including look-ahead and look-behind, is not supported"),
            ("(", "unclosed group"),
            ("(a{1000}){1000}", "Compiled regex exceeds size limit of 10485760 bytes"),
        ):
            told = await recalled(conversation, asking, query=pattern, regex=True)
            assert told == f"{pattern!r} is not a regular expression that can be used here: {reason}."


async def test_what_was_masked_is_found_and_what_is_shown_is_not() -> None:
    asking = Asking()
    async with talk(scripted(reading(asking, 7), page, condenser=Masking())) as conversation:
        await conversation.run("read on")
        assert conversation.state.masked
        assert "port 7443" in await recalled(conversation, asking, query="7443")
        assert "0 of " in await recalled(conversation, asking, query="octopus")


async def test_it_says_that_nothing_was_forgotten_and_what_it_needs() -> None:
    asking = Asking()
    async with talk(scripted(reading(asking, 1), page, condenser=Window())) as conversation:
        await conversation.run("read on")
        found = await recalled(conversation, asking, query="gateway")
        assert found == "Nothing was forgotten or left out: you are shown the whole conversation."
        assert "Pass query" in await recalled(conversation, asking)
        assert "no word" in await recalled(conversation, asking, query="!?")
        assert "nothing" not in await recalled(conversation, asking, seq=1)
        assert "at seq 999 or after" in await recalled(conversation, asking, seq=999)


async def test_other_branches_are_not_recalled() -> None:
    asking = Asking()
    async with talk(scripted(ScriptedLLM(asking), condenser=Window(facts=False))) as conversation:
        await conversation.run("zero")
        start = conversation.state.head
        await conversation.run("the zebra")
        await conversation.rewind(start)
        for text in ("one", "two", "three"):
            await conversation.run(f"{text} " * 600)
        assert await conversation.condense() is not None
        assert "0 of " in await recalled(conversation, asking, query="zebra")


async def test_a_secret_that_became_known_later_is_masked_before_it_is_cut() -> None:
    asking = Asking()
    async with talk(scripted(reading(asking, 9), page, condenser=Window())) as conversation:
        await conversation.run("read on")
        await conversation.add_secrets({"PORT": "port 7443"})
        assert "<secret:PORT>" in await recalled(conversation, asking, query="gateway listens")
        assert "7443" not in "".join(asking.answers)


async def test_only_an_agent_with_a_condenser_has_it() -> None:
    with_one = scripted([say("a")], condenser=Window())
    assert [each.name for each in with_one.own_tools] == ["finish", "think", "recall"]
    assert [each.name for each in scripted([say("a")]).own_tools] == ["finish", "think"]
    asking = Asking()
    async with talk(scripted(ScriptedLLM(asking))) as conversation:
        asking.calls.append({"query": "x"})
        await conversation.run("go")
        assert error_of(conversation).code == "unknown_tool"
