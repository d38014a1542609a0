"""Searching files for lines that match a regular expression."""

from agentcore_tools.grep.tool import GrepAction as GrepAction
from agentcore_tools.grep.tool import GrepFile as GrepFile
from agentcore_tools.grep.tool import GrepObservation as GrepObservation
from agentcore_tools.grep.tool import grep_tool as grep_tool
