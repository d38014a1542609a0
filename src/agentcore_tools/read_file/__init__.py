"""Reading a file, for models that prefer small tools to one file editor."""

from agentcore_tools.read_file.action import ReadFileAction as ReadFileAction
from agentcore_tools.read_file.observation import ReadFileObservation as ReadFileObservation
from agentcore_tools.read_file.tool import read_file_tool as read_file_tool
