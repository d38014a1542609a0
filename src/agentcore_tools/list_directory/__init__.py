"""Listing a folder, for models that know a tool of this name."""

from agentcore_tools.list_directory.action import ListDirectoryAction as ListDirectoryAction
from agentcore_tools.list_directory.observation import ListDirectoryObservation as ListDirectoryObservation
from agentcore_tools.list_directory.tool import list_directory_tool as list_directory_tool
