"""Tools for agents that write software: each in a folder of its own, and sets of them for kinds of work."""

from agentcore_tools.apply_patch import ApplyPatchAction as ApplyPatchAction
from agentcore_tools.apply_patch import ApplyPatchObservation as ApplyPatchObservation
from agentcore_tools.apply_patch import apply_patch_tool as apply_patch_tool
from agentcore_tools.edit import EditAction as EditAction
from agentcore_tools.edit import EditObservation as EditObservation
from agentcore_tools.edit import edit_tool as edit_tool
from agentcore_tools.file_editor import FileEditorAction as FileEditorAction
from agentcore_tools.file_editor import FileEditorObservation as FileEditorObservation
from agentcore_tools.file_editor import file_editor_tool as file_editor_tool
from agentcore_tools.presets import coding_tools as coding_tools
from agentcore_tools.read_file import ReadFileAction as ReadFileAction
from agentcore_tools.read_file import ReadFileObservation as ReadFileObservation
from agentcore_tools.read_file import read_file_tool as read_file_tool
from agentcore_tools.terminal import TerminalAction as TerminalAction
from agentcore_tools.terminal import TerminalObservation as TerminalObservation
from agentcore_tools.terminal import terminal_tool as terminal_tool
from agentcore_tools.write_file import WriteFileAction as WriteFileAction
from agentcore_tools.write_file import WriteFileObservation as WriteFileObservation
from agentcore_tools.write_file import write_file_tool as write_file_tool
