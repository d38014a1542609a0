"""A task list as a tool.

The newest answer of the tool on the active branch is the list. So it is resumed, forked and rewound with the conversation,
and it survives when that answer is no longer shown to the model. There is no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import ConfigDict, Field, ValidationError

from agentcore._value import Value
from agentcore.display import DisplayBlock, DisplayTask, TasksBlock
from agentcore.errors import ToolError
from agentcore.messages import ResultBlock
from agentcore.tools import Action, Arguments, Observation, Resource, Tool, ToolAnnotations, ToolContext, ToolSpec
from agentcore_tools._calls import IGNORED, heading, rename


class Task(Value):
    """One thing to do."""

    # As in an action, the sentence under a field is its description for the model.
    model_config = ConfigDict(use_attribute_docstrings=True)

    title: str = Field(min_length=1)
    """The task in a few words."""
    notes: str = ""
    """Details: how, where, what was found out."""
    status: Literal["todo", "in_progress", "done"] = "todo"
    """How far it is."""


class TaskTrackerAction(Action):
    """A look at the list, or a new one."""

    command: Literal["view", "plan"]
    """view shows the list; plan puts a new one in its place."""
    task_list: list[Task] | None = None
    """For plan: all tasks, in the order in which they are to be done, those that are done included."""


_MARKS: Final = {"todo": "[ ]", "in_progress": "[~]", "done": "[x]"}


class TaskTrackerObservation(Observation):
    """The whole list. Recorded with each answer, it is the list: there is no other."""

    command: Literal["view", "plan"]
    tasks: tuple[Task, ...]

    def to_content(self) -> Sequence[str | ResultBlock]:
        if not self.tasks:
            return ("There is no task list. Make one with plan.",)
        done = sum(task.status == "done" for task in self.tasks)
        head = "The task list is" if self.command == "view" else "The task list is now"
        rows = [f"{head} ({done} of {len(self.tasks)} done):"]
        for number, task in enumerate(self.tasks, 1):
            rows.append(f"{number}. {_MARKS[task.status]} {task.title}")
            rows += [f"       {line}" for line in task.notes.splitlines()]
        working = [task for task in self.tasks if task.status == "in_progress"]
        if len(working) > 1:
            rows.append(f"[{len(working)} tasks are in progress. Work on one at a time.]")
        return ("\n".join(rows),)


_DESCRIPTION: Final = """\
Keep a list of what is to be done. Use it for work of several steps: plan the steps first, mark the one that you work on as \
in_progress, and mark it as done when it is, before you begin the next. One task is in progress at a time. plan replaces the \
whole list; view shows it."""
_OTHER_NAMES: Final = {"tasks": "task_list", "todos": "task_list", "plan": "task_list"}
_OTHER_TITLES: Final = {"content": "title", "task": "title", "step": "title", "name": "title", "description": "notes"}
_OTHER_STATUSES: Final = {
    "pending": "todo",
    "open": "todo",
    "doing": "in_progress",
    "completed": "done",
    "complete": "done",
}


def task_tracker_tool() -> Tool[TaskTrackerAction, TaskTrackerObservation]:
    """Make the tool with which an agent keeps a list of what is to be done."""
    return Tool(
        name="task_tracker",
        description=_DESCRIPTION,
        action=TaskTrackerAction,
        execute=_track,
        annotations=ToolAnnotations(
            title="Task list", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=lambda action, root: (  # noqa: ARG005 it is not a file
            Resource.named("task_tracker", "read" if action.command == "view" else "write"),
        ),
        aliases=("todo_write", "update_plan", "write_todos", "todo", "plan"),
        ignored=IGNORED,
        normalize=_normalize,
        display_call=_show_call,
        display_answer=lambda _action, observation: _listed(observation.tasks),
        spec=ToolSpec(name="task_tracker"),
    )


def _show_call(action: TaskTrackerAction) -> Sequence[DisplayBlock]:
    return (*heading(action.command), *_listed(action.task_list or ()))


def _listed(tasks: Sequence[Task]) -> Sequence[DisplayBlock]:
    """Show the list, if there is one."""
    return (TasksBlock(tasks=tuple(DisplayTask(**task.model_dump()) for task in tasks)),) if tasks else ()


async def _track(action: TaskTrackerAction, ctx: ToolContext) -> TaskTrackerObservation:
    if action.command == "plan":
        if action.task_list is None:
            raise ToolError("plan needs task_list, which is missing: all tasks, each with a title and a status.")
        return TaskTrackerObservation(command="plan", tasks=tuple(action.task_list))
    return TaskTrackerObservation(command="view", tasks=_recorded(ctx))


def _recorded(ctx: ToolContext) -> tuple[Task, ...]:
    data = ctx.last_data
    try:
        return () if data is None else TaskTrackerObservation.model_validate(dict(data)).tasks
    except ValidationError:
        return ()  # another tool of the same name wrote it


def _normalize(arguments: Arguments) -> Arguments:
    normalized = rename(arguments, _OTHER_NAMES)
    given = normalized.get("task_list")
    if isinstance(given, list):
        normalized["task_list"] = [_normalize_task(task) if isinstance(task, dict) else task for task in given]
    if normalized.get("command") is None:
        normalized["command"] = "view" if given is None else "plan"
    return normalized


def _normalize_task(task: Arguments) -> Arguments:
    normalized: Arguments = {}
    for name, value in task.items():
        meant = _OTHER_TITLES.get(name, name)
        if meant == name or meant not in task:
            normalized[meant] = value
    status = normalized.get("status")
    if isinstance(status, str):
        normalized["status"] = _OTHER_STATUSES.get(status, status)
    return {name: value for name, value in normalized.items() if name in Task.model_fields}
