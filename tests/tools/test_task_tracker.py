"""The task list, in conversations that are resumed, forked, rewound and condensed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agentcore import Agent, Conversation, FileStore, ObservationEvent
from agentcore.condense import Outline
from agentcore.events import Condensation
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import read_call
from agentcore_tools import TaskTrackerAction, task_tracker_tool

FIRST: list[JsonValue] = [
    {"title": "Look", "status": "done"},
    {"title": "Do", "notes": "with care\nand tests", "status": "in_progress"},
]
SECOND: list[JsonValue] = [{"title": "Other"}]


def plan(tasks: list[JsonValue]) -> Any:
    return call("task_tracker", command="plan", task_list=tasks)


def view() -> Any:
    return call("task_tracker", command="view")


def told(conversation: Conversation) -> list[str]:
    return [event.text for event in conversation.state.shown if isinstance(event, ObservationEvent)]


def agent(*replies: Any, condenser: Any = None) -> Agent:
    return Agent(llm=ScriptedLLM(replies), tools=[task_tracker_tool()], condenser=condenser)


BUSY: list[JsonValue] = [{"title": title, "status": "in_progress"} for title in ("a", "b")]


async def test_the_list_is_what_was_planned_last(tmp_path: Path) -> None:
    script = agent(view(), plan(FIRST), calls(plan(SECOND), view()), plan(BUSY), say("ok"))
    async with Conversation(script, tmp_path) as conversation:
        await conversation.run("go")
        answers = told(conversation)
    assert answers[:-1] == [
        "There is no task list. Make one with plan.",
        "The task list is now (1 of 2 done):\n1. [x] Look\n2. [~] Do\n       with care\n       and tests",
        "The task list is now (0 of 1 done):\n1. [ ] Other",
        "The task list is (0 of 1 done):\n1. [ ] Other",
    ]
    assert answers[-1].endswith("[2 tasks are in progress. Work on one at a time.]")


async def test_it_is_resumed_forked_and_rewound_with_the_conversation(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    script = agent(plan(FIRST), say("a"), plan(SECOND), say("b"), view(), say("c"))
    async with Conversation(script, tmp_path, store=store) as first:
        await first.run("one")
        at = first.state.head
        await first.run("two")
        fork = await first.fork(at=at)
    for id_, task in ((first.id, "1. [ ] Other"), (fork, "2. [~] Do")):
        async with Conversation(agent(view(), say("c")), tmp_path, store=store, id=id_) as opened:
            await opened.run("three")
            assert task in told(opened)[-1]
    async with Conversation(agent(view(), say("c")), tmp_path, store=store, id=first.id) as rewound:
        await rewound.rewind(to=at)
        await rewound.run("four")
        assert "2. [~] Do" in told(rewound)[-1]
    assert not list(tmp_path.rglob("*TASK*"))


class ForgetPlans:
    """Forgets all answers that there are, once there are some."""

    async def condense(self, outline: Outline) -> Condensation | None:
        answers = [item for item in outline.items if item.kind == "reply"]
        if not answers or outline.last_summary is not None:
            return None
        return outline.forget(answers, summary="Planned.")

    def record(self) -> None:
        """It is of this file."""


async def test_it_is_there_when_the_model_is_not_shown_it_any_more(tmp_path: Path) -> None:
    long: JsonValue = {"title": "Read", "notes": "far more " * 300}
    model = agent(plan([*FIRST, long]), view(), say("c"), condenser=ForgetPlans())
    async with Conversation(model, tmp_path) as conversation:
        await conversation.run("go")
        assert any(isinstance(event, Condensation) for event in conversation.state.events)
        assert "2. [~] Do" in told(conversation)[-1]


async def test_calls_as_other_programs_have_them_are_understood() -> None:
    read = read_call(
        "todo_write", {"todos": [{"content": "Look", "status": "completed", "id": "1"}]}, [task_tracker_tool()]
    )
    assert read.action == TaskTrackerAction.model_validate(
        {"command": "plan", "task_list": [{"title": "Look", "status": "done"}]}
    )
    assert read_call("task_tracker", {}, [task_tracker_tool()]).action == TaskTrackerAction(command="view")
