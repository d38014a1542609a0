"""Listing what is in a folder, as a tree."""

from agentcore_tools.list_files.action import ListFilesAction as ListFilesAction
from agentcore_tools.list_files.observation import ListFilesObservation as ListFilesObservation
from agentcore_tools.list_files.tool import list_files_tool as list_files_tool
