"""A list of what is to be done."""

from agentcore_tools.task_tracker.action import Task as Task
from agentcore_tools.task_tracker.action import TaskTrackerAction as TaskTrackerAction
from agentcore_tools.task_tracker.observation import TaskTrackerObservation as TaskTrackerObservation
from agentcore_tools.task_tracker.tool import task_tracker_tool as task_tracker_tool
