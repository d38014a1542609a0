"""The contract of conversations finds what it is there to find."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from agentcore import Agent, Conversation, Limits, MemoryStore
from agentcore.llm import Model
from agentcore.record import ConversationState, read_log
from agentcore.testing import ConversationContract, ScriptedLLM, say
from agentcore.testing.conversation_place import ScriptLines


class Place:
    """A place that leaves out some of what it is passed."""

    ignores: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemoryStore()

    def model(self, replies: ScriptLines) -> Model:
        return ScriptedLLM(replies)

    def open(self, agent: Agent | None, **options: Any) -> AbstractAsyncContextManager[Conversation]:
        passed = {name: value for name, value in options.items() if name not in self.ignores}
        return Conversation(agent, self.folder, store=self.store, **passed)

    async def read_state(self, conversation_id: str) -> ConversationState:
        return await read_log(self.store, conversation_id)


class Careless(Place):
    ignores = ("confirm", "limits", "deps", "on_question", "secrets")


class Forgetful(Place):
    def open(self, agent: Agent | None, **options: Any) -> AbstractAsyncContextManager[Conversation]:
        self.store = MemoryStore()
        return super().open(agent, **options)


class Lagging(Place):
    """Reads a log that ends before the conversation's own does."""

    async def read_state(self, conversation_id: str) -> ConversationState:
        whole = await super().read_state(conversation_id)
        state = ConversationState(conversation_id)
        for event in list(whole.events)[:-1]:
            state.apply(event)
        return state


class Mute(Place):
    """Its models say something else than they are to."""

    def model(self, replies: ScriptLines) -> Model:
        del replies
        return ScriptedLLM(lambda _: say("something else"))


class Bounded(Place):
    def open(self, agent: Agent | None, **options: Any) -> AbstractAsyncContextManager[Conversation]:
        return super().open(agent, **{**options, "limits": Limits(steps=1)})


FAULTS = [
    (Careless, "test_an_action_waits_until_it_is_approved"),
    (Careless, "test_a_callback_decides_on_each_action"),
    (Careless, "test_a_callback_answers_questions_one_after_another"),
    (Careless, "test_a_limit_ends_the_run_and_is_named"),
    (Careless, "test_a_tool_has_its_context_and_the_programs_own_value"),
    (Careless, "test_a_secret_reaches_tools_and_nobody_else"),
    (Forgetful, "test_a_conversation_goes_on_by_its_id"),
    (Forgetful, "test_an_action_waits_for_a_person_after_the_conversation_was_closed"),
    (Lagging, "test_the_log_read_beside_it_folds_to_the_same_state"),
    (Lagging, "test_what_is_set_is_in_the_state"),
    (Mute, "test_a_run_ends_with_the_words_of_the_model"),
    (Bounded, "test_calls_are_run_and_the_model_reads_their_answers"),
]


@pytest.mark.parametrize(("place", "test"), FAULTS)
async def test_a_fault_is_found(place: type[Place], test: str, tmp_path: Path) -> None:
    passes = getattr(ConversationContract(), test)
    await passes(Place(tmp_path))
    with pytest.raises(Exception, match=r".*"):  # an assertion of the test, or what the fault led to
        await passes(place(tmp_path))
