"""The context of a request: what a model is shown."""

from agentcore.context.condenser import Condenser as Condenser
from agentcore.context.memory import Memory as Memory
from agentcore.context.memory import user_memory_path as user_memory_path
from agentcore.context.project_files import ProjectFiles as ProjectFiles
from agentcore.context.prompt import DEFAULT_PROMPT as DEFAULT_PROMPT
from agentcore.context.prompt import Instructions as Instructions
from agentcore.context.prompt import InstructionsContext as InstructionsContext
from agentcore.context.prompt import system_prompt as system_prompt
from agentcore.context.prompt import write_instructions as write_instructions
from agentcore.context.view import Messages as Messages
from agentcore.context.view import View as View
from agentcore.context.view import build_messages as build_messages
from agentcore.context.view import rebuild_request as rebuild_request
