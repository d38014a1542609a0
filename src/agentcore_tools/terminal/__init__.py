"""A terminal: one bash that lives as long as the conversation."""

from agentcore_tools.terminal.call import TerminalAction as TerminalAction
from agentcore_tools.terminal.call import TerminalObservation as TerminalObservation
from agentcore_tools.terminal.tool import terminal_tool as terminal_tool
