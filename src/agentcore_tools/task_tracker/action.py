"""What is asked of a task list."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from agentcore._value import Value
from agentcore.tools import Action

__all__ = ["Task", "TaskTrackerAction"]


class Task(Value):
    """One thing to do."""

    # As of an action: the sentence under a field is what the model is told of it.
    model_config = ConfigDict(use_attribute_docstrings=True)

    title: str = Field(min_length=1)
    """What is to be done, in a few words."""
    notes: str = ""
    """What matters about it: how, where, what was found out."""
    status: Literal["todo", "in_progress", "done"] = "todo"
    """How far it is."""


class TaskTrackerAction(Action):
    """A look at the list, or a new one."""

    command: Literal["view", "plan"]
    """view shows the list; plan puts a new one in its place."""
    task_list: list[Task] | None = None
    """For plan: all tasks, in the order in which they are to be done, those that are done included."""
