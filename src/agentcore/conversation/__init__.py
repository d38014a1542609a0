"""A conversation: a task group in which steps, calls and the log communicate over streams."""

from agentcore._delta import StreamDelta as StreamDelta
from agentcore.conversation.deltas import DeltaCursor as DeltaCursor
from agentcore.conversation.handle import Conversation as Conversation
from agentcore.conversation.host import Host as Host
from agentcore.conversation.questions import Answered as Answered
from agentcore.conversation.questions import Declined as Declined
from agentcore.conversation.questions import OnQuestion as OnQuestion
from agentcore.conversation.result import RunFailure as RunFailure
from agentcore.conversation.result import RunResult as RunResult
from agentcore.conversation.run import RunStream as RunStream
from agentcore.conversation.serve import serve_conversation as serve_conversation
from agentcore.conversation.watch import EventCursor as EventCursor
