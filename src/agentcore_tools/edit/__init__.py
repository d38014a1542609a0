"""Replacing text in a file, for models that prefer small tools to one file editor."""

from agentcore_tools.edit.action import EditAction as EditAction
from agentcore_tools.edit.observation import EditObservation as EditObservation
from agentcore_tools.edit.tool import edit_tool as edit_tool
