"""What tests of agents are made of: a model that plays a script, in the process or over HTTP."""

from agentcore.testing.provider import ChatProvider as ChatProvider
from agentcore.testing.provider import serve_provider as serve_provider
from agentcore.testing.script import Gate as Gate
from agentcore.testing.script import Request as Request
from agentcore.testing.script import Said as Said
from agentcore.testing.script import ScriptLine as ScriptLine
from agentcore.testing.script import broken_off as broken_off
from agentcore.testing.script import call as call
from agentcore.testing.script import calls as calls
from agentcore.testing.script import hang as hang
from agentcore.testing.script import say as say
from agentcore.testing.scripted import ScriptedLLM as ScriptedLLM
