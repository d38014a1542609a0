"""The context of a request: what a model is shown."""

from agentcore.context.prompt import DEFAULT_PROMPT as DEFAULT_PROMPT
from agentcore.context.prompt import Instructions as Instructions
from agentcore.context.prompt import InstructionsContext as InstructionsContext
from agentcore.context.prompt import system_prompt as system_prompt
from agentcore.context.prompt import write_instructions as write_instructions
from agentcore.context.source import ContextPart as ContextPart
from agentcore.context.source import ContextSource as ContextSource
from agentcore.context.source import Happened as Happened
from agentcore.context.source import OpenSource as OpenSource
from agentcore.context.source import SourceContext as SourceContext
from agentcore.context.source import SourceSpec as SourceSpec
from agentcore.context.view import LEFT_OUT as LEFT_OUT
from agentcore.context.view import Messages as Messages
from agentcore.context.view import View as View
from agentcore.context.view import ViewItem as ViewItem
from agentcore.context.view import build_messages as build_messages
from agentcore.context.view import rebuild_request as rebuild_request
