"""A file editor: it looks at files and folders, and changes text files."""

from agentcore_tools.file_editor.tool import FileEditorAction as FileEditorAction
from agentcore_tools.file_editor.tool import FileEditorObservation as FileEditorObservation
from agentcore_tools.file_editor.tool import file_editor_tool as file_editor_tool
