"""A terminal: one bash that lives as long as the conversation."""

from agentcore_tools.terminal.action import TerminalAction as TerminalAction
from agentcore_tools.terminal.observation import TerminalObservation as TerminalObservation
from agentcore_tools.terminal.tool import terminal_tool as terminal_tool
