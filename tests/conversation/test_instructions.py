"""Instructions of an agent: text, or a function that writes it for each conversation."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from agentcore import Agent, Condensation, Conversation, InstructionsContext, MemoryStore, SystemPromptEvent
from agentcore.condense import Outline
from agentcore.errors import NotRecorded, ReentrantCall, RunError
from agentcore.testing import ScriptedLLM, say
from talks import events_of, scripted


def prompts_of(conversation: Conversation) -> list[str]:
    return [event.prompt for event in events_of(conversation, SystemPromptEvent)]


class Counting:
    """A function that writes other instructions each time, for whom it works."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self, ctx: InstructionsContext[str]) -> str:
        await checkpoint()
        self.times += 1
        return f"You work for {ctx.deps}, time {self.times}."


def agent_with(instructions: Any) -> Agent:
    return scripted([say(str(n)) for n in range(6)], instructions=instructions)


async def no_argument() -> str:
    await checkpoint()
    return "Be brief in Rome."


async def from_deps(ctx: InstructionsContext[str]) -> str:
    await checkpoint()
    return f"Be brief in {ctx.deps}."


def plain_coroutine() -> Coroutine[Any, Any, str]:
    return no_argument()


def plain_from_deps(ctx: InstructionsContext[str]) -> str:
    return f"Be brief in {ctx.deps}."


@pytest.mark.parametrize(
    "instructions",
    [
        "Be brief in Rome.",
        no_argument,
        from_deps,
        lambda: "Be brief in Rome.",
        plain_coroutine,
        plain_from_deps,
        lambda city="Rome": f"Be brief in {city}.",
    ],
    ids=[
        "text",
        "async",
        "async with context",
        "plain",
        "plain that returns a coroutine",
        "plain with context",
        "a default",
    ],
)
async def test_text_and_functions_are_added_to_the_prompt(instructions: Any) -> None:
    async with Conversation(agent_with(instructions), deps="Rome") as conversation:
        await conversation.run("go")
        (prompt,) = prompts_of(conversation)
    assert prompt.split("\n\n")[-2] == "Be brief in Rome."


async def test_a_function_is_asked_when_the_conversation_is_opened_and_after_a_rewind_and_never_in_between() -> None:
    store, count = MemoryStore(), Counting()
    async with Conversation(agent_with(count), store=store, id="a", deps="Ada") as conversation:
        await conversation.run("one")
        point = conversation.state.head
        await conversation.run("two")
        assert count.times == 1
        await conversation.rewind(to=point)
        await conversation.run("three")
        assert count.times == 2
        assert prompts_of(conversation)[-1].split("\n\n")[-2] == "You work for Ada, time 2."
    async with Conversation(agent_with(count), store=store, id="a", deps="Bob") as conversation:
        await conversation.run("four")
        assert conversation.state.prompt is not None
        assert "You work for Bob, time 3." in conversation.state.prompt.prompt


async def test_a_function_is_asked_after_the_history_was_cut() -> None:
    class Forgetting:
        def __init__(self) -> None:
            self.cuts = 0

        async def condense(self, outline: Outline) -> Condensation | None:
            await checkpoint()
            if len(outline.items) < 3 or self.cuts:
                return None
            self.cuts += 1
            return outline.forget(outline.items[:2], summary="So.")

        def record(self) -> None:
            """It holds a count."""

    count, llm = Counting(), ScriptedLLM([say(str(n)) for n in range(3)])
    agent = Agent(llm=llm, instructions=count, condenser=Forgetting())
    async with Conversation(agent, deps="Ada") as conversation:
        for text in ("one " * 400, "two", "three"):
            await conversation.run(text)
    assert count.times == 2
    assert ["time 2" in request.messages[0].text for request in llm.requests] == [False, True, True]


async def test_a_function_that_returns_nothing_adds_nothing_and_a_secret_in_it_is_masked() -> None:
    async with Conversation(agent_with(lambda: None)) as without, Conversation(agent_with(None)) as plain:
        await without.run("go")
        await plain.run("go")
        assert prompts_of(without) == prompts_of(plain)
    agent = agent_with(lambda: "The key is s3cret-value.")
    async with Conversation(agent, secrets={"KEY": "s3cret-value"}) as conversation:
        await conversation.run("go")
        assert "The key is <secret:KEY>." in prompts_of(conversation)[0]


async def test_text_is_recorded_and_a_function_has_to_be_passed_again() -> None:
    store = MemoryStore()
    for name, instructions in (("text", "Be brief."), ("function", lambda: "Be brief.")):
        async with Conversation(agent_with(instructions), store=store, id=name) as conversation:
            await conversation.run("go")
            assert conversation.state.agent is not None
            assert conversation.state.agent.agent.get("instructions") == ("Be brief." if name == "text" else None)
    with pytest.raises(NotRecorded, match="the function that writes the instructions"):
        async with Conversation(None, store=store, id="function"):
            pass


@pytest.mark.parametrize(
    ("instructions", "error"),
    [(lambda: 5, "returned 5: it has to return text, or None"), (lambda: 1 // 0, "ZeroDivisionError")],
)
async def test_a_function_that_fails_fails_the_run_which_can_be_tried_again(
    instructions: Callable[[], object], error: str
) -> None:
    answers = [instructions, lambda: "Be brief."]

    def next_answer() -> object:
        return answers.pop(0)()

    async with Conversation(agent_with(next_answer)) as conversation:
        with pytest.raises(RunError, match=error):
            await conversation.run("go")
        await conversation.run()
        assert "Be brief." in prompts_of(conversation)[-1]


async def test_a_function_cannot_run_the_conversation_that_waits_for_it() -> None:
    async def reenter() -> str:
        await conversation.run("again")
        return "never"

    async with Conversation(agent_with(reenter)) as conversation:
        with pytest.raises(RunError) as caught:
            await conversation.run("go")
    assert isinstance(caught.value.error, ReentrantCall)
