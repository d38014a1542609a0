"""Writing a whole file, for models that prefer small tools to one file editor."""

from agentcore_tools.write_file.action import WriteFileAction as WriteFileAction
from agentcore_tools.write_file.observation import WriteFileObservation as WriteFileObservation
from agentcore_tools.write_file.tool import write_file_tool as write_file_tool
