"""Reading several files at once."""

from agentcore_tools.read_many.action import ReadManyAction as ReadManyAction
from agentcore_tools.read_many.observation import ReadManyFile as ReadManyFile
from agentcore_tools.read_many.observation import ReadManyObservation as ReadManyObservation
from agentcore_tools.read_many.tool import read_many_tool as read_many_tool
