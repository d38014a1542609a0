"""Tools for agents that write software: a terminal and a file editor, each in a folder of its own."""

from agentcore_tools.file_editor import FileEditorAction as FileEditorAction
from agentcore_tools.file_editor import FileEditorObservation as FileEditorObservation
from agentcore_tools.file_editor import file_editor_tool as file_editor_tool
from agentcore_tools.presets import coding_tools as coding_tools
from agentcore_tools.terminal import TerminalAction as TerminalAction
from agentcore_tools.terminal import TerminalObservation as TerminalObservation
from agentcore_tools.terminal import terminal_tool as terminal_tool
