"""The task list as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from agentcore.messages import ResultBlock
from agentcore.tools import Observation
from agentcore_tools.task_tracker.action import Task

__all__ = ["TaskTrackerObservation"]

_MARKS: Final = {"todo": "[ ]", "in_progress": "[~]", "done": "[x]"}


class TaskTrackerObservation(Observation):
    """The whole list. Recorded with each answer, it is the list: there is no other."""

    command: Literal["view", "plan"]
    tasks: tuple[Task, ...]

    def to_content(self) -> Sequence[str | ResultBlock]:
        if not self.tasks:
            return ("There is no task list. Make one with plan.",)
        done = sum(task.status == "done" for task in self.tasks)
        said = "The task list is" if self.command == "view" else "The task list is now"
        rows = [f"{said} ({done} of {len(self.tasks)} done):"]
        for number, task in enumerate(self.tasks, 1):
            rows.append(f"{number}. {_MARKS[task.status]} {task.title}")
            rows += [f"       {line}" for line in task.notes.splitlines()]
        working = [task for task in self.tasks if task.status == "in_progress"]
        if len(working) > 1:
            rows.append(f"[{len(working)} tasks are in progress. Work on one at a time.]")
        return ("\n".join(rows),)
