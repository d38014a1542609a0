"""Finding files by their paths."""

from agentcore_tools.glob.action import GlobAction as GlobAction
from agentcore_tools.glob.observation import GlobObservation as GlobObservation
from agentcore_tools.glob.tool import glob_tool as glob_tool
