"""An async-native runtime for software agents.

Above: your program. Everything a program types most is here; the rest has its folder: `agentcore.events`,
`agentcore.messages`, `agentcore.record`, `agentcore.tools`, `agentcore.errors`, `agentcore.testing` ...
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agentcore._collecting import without_collections

__version__ = "0.1.0"

if TYPE_CHECKING:
    from agentcore.agent import Agent as Agent
    from agentcore.assessment import Assessment as Assessment
    from agentcore.context import AgentContext as AgentContext
    from agentcore.conversation import Conversation as Conversation
    from agentcore.conversation import Host as Host
    from agentcore.conversation import RunResult as RunResult
    from agentcore.conversation import RunStream as RunStream
    from agentcore.events import ActionApproved as ActionApproved
    from agentcore.events import ActionAssessed as ActionAssessed
    from agentcore.events import ActionEvent as ActionEvent
    from agentcore.events import ActionStarted as ActionStarted
    from agentcore.events import AgentConfigured as AgentConfigured
    from agentcore.events import AgentErrorEvent as AgentErrorEvent
    from agentcore.events import Condensation as Condensation
    from agentcore.events import CondensationRequest as CondensationRequest
    from agentcore.events import CondensationSummaryEvent as CondensationSummaryEvent
    from agentcore.events import ConversationErrorEvent as ConversationErrorEvent
    from agentcore.events import ConversationStateUpdateEvent as ConversationStateUpdateEvent
    from agentcore.events import ConversationStatus as ConversationStatus
    from agentcore.events import Event as Event
    from agentcore.events import HeadMoved as HeadMoved
    from agentcore.events import HookEvent as HookEvent
    from agentcore.events import InterruptEvent as InterruptEvent
    from agentcore.events import MessageEvent as MessageEvent
    from agentcore.events import ObservationEvent as ObservationEvent
    from agentcore.events import PauseEvent as PauseEvent
    from agentcore.events import RetryEvent as RetryEvent
    from agentcore.events import SystemPromptEvent as SystemPromptEvent
    from agentcore.events import UsageEvent as UsageEvent
    from agentcore.events import UserRejectObservation as UserRejectObservation
    from agentcore.events import WorkspaceOpened as WorkspaceOpened
    from agentcore.llm import LLM as LLM
    from agentcore.llm import Model as Model
    from agentcore.llm import Reply as Reply
    from agentcore.messages import Message as Message
    from agentcore.messages import read_media as read_media
    from agentcore.record import ConversationState as ConversationState
    from agentcore.record import FileStore as FileStore
    from agentcore.record import MemoryStore as MemoryStore
    from agentcore.record import Store as Store
    from agentcore.risk import SecurityRisk as SecurityRisk
    from agentcore.security import AlwaysConfirm as AlwaysConfirm
    from agentcore.security import ConfirmRisky as ConfirmRisky
    from agentcore.security import NeverConfirm as NeverConfirm
    from agentcore.tools import Action as Action
    from agentcore.tools import Observation as Observation
    from agentcore.tools import OpenToolset as OpenToolset
    from agentcore.tools import Tool as Tool
    from agentcore.tools import ToolContext as ToolContext
    from agentcore.tools import Toolset as Toolset
    from agentcore.tools import ToolsetContext as ToolsetContext
    from agentcore.tools import filtered as filtered
    from agentcore.tools import prefixed as prefixed
    from agentcore.tools import renamed as renamed
    from agentcore.tools import tool as tool
    from agentcore.usage import Limits as Limits
    from agentcore.usage import Usage as Usage
    from agentcore.workspace import CommandResult as CommandResult
    from agentcore.workspace import LocalWorkspace as LocalWorkspace
    from agentcore.workspace import Workspace as Workspace

_HOMES = {
    "Action": "agentcore.tools",
    "ActionApproved": "agentcore.events",
    "ActionAssessed": "agentcore.events",
    "ActionEvent": "agentcore.events",
    "ActionStarted": "agentcore.events",
    "Agent": "agentcore.agent",
    "AgentConfigured": "agentcore.events",
    "AgentContext": "agentcore.context",
    "AgentErrorEvent": "agentcore.events",
    "AlwaysConfirm": "agentcore.security",
    "Assessment": "agentcore.assessment",
    "CommandResult": "agentcore.workspace",
    "Condensation": "agentcore.events",
    "CondensationRequest": "agentcore.events",
    "CondensationSummaryEvent": "agentcore.events",
    "ConfirmRisky": "agentcore.security",
    "Conversation": "agentcore.conversation",
    "ConversationErrorEvent": "agentcore.events",
    "ConversationState": "agentcore.record",
    "ConversationStateUpdateEvent": "agentcore.events",
    "ConversationStatus": "agentcore.events",
    "Event": "agentcore.events",
    "FileStore": "agentcore.record",
    "HeadMoved": "agentcore.events",
    "HookEvent": "agentcore.events",
    "Host": "agentcore.conversation",
    "InterruptEvent": "agentcore.events",
    "LLM": "agentcore.llm",
    "Limits": "agentcore.usage",
    "LocalWorkspace": "agentcore.workspace",
    "MemoryStore": "agentcore.record",
    "Message": "agentcore.messages",
    "MessageEvent": "agentcore.events",
    "Model": "agentcore.llm",
    "NeverConfirm": "agentcore.security",
    "Observation": "agentcore.tools",
    "ObservationEvent": "agentcore.events",
    "OpenToolset": "agentcore.tools",
    "PauseEvent": "agentcore.events",
    "Reply": "agentcore.llm",
    "RetryEvent": "agentcore.events",
    "RunResult": "agentcore.conversation",
    "RunStream": "agentcore.conversation",
    "SecurityRisk": "agentcore.risk",
    "Store": "agentcore.record",
    "SystemPromptEvent": "agentcore.events",
    "Tool": "agentcore.tools",
    "ToolContext": "agentcore.tools",
    "Toolset": "agentcore.tools",
    "ToolsetContext": "agentcore.tools",
    "Usage": "agentcore.usage",
    "UsageEvent": "agentcore.events",
    "UserRejectObservation": "agentcore.events",
    "Workspace": "agentcore.workspace",
    "WorkspaceOpened": "agentcore.events",
    "filtered": "agentcore.tools",
    "prefixed": "agentcore.tools",
    "read_media": "agentcore.messages",
    "renamed": "agentcore.tools",
    "tool": "agentcore.tools",
}

__all__ = [
    "LLM",
    "Action",
    "ActionApproved",
    "ActionAssessed",
    "ActionEvent",
    "ActionStarted",
    "Agent",
    "AgentConfigured",
    "AgentContext",
    "AgentErrorEvent",
    "AlwaysConfirm",
    "Assessment",
    "CommandResult",
    "Condensation",
    "CondensationRequest",
    "CondensationSummaryEvent",
    "ConfirmRisky",
    "Conversation",
    "ConversationErrorEvent",
    "ConversationState",
    "ConversationStateUpdateEvent",
    "ConversationStatus",
    "Event",
    "FileStore",
    "HeadMoved",
    "HookEvent",
    "Host",
    "InterruptEvent",
    "Limits",
    "LocalWorkspace",
    "MemoryStore",
    "Message",
    "MessageEvent",
    "Model",
    "NeverConfirm",
    "Observation",
    "ObservationEvent",
    "OpenToolset",
    "PauseEvent",
    "Reply",
    "RetryEvent",
    "RunResult",
    "RunStream",
    "SecurityRisk",
    "Store",
    "SystemPromptEvent",
    "Tool",
    "ToolContext",
    "Toolset",
    "ToolsetContext",
    "Usage",
    "UsageEvent",
    "UserRejectObservation",
    "Workspace",
    "WorkspaceOpened",
    "filtered",
    "prefixed",
    "read_media",
    "renamed",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for, so that importing agentcore stays cheap."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'agentcore' has no attribute {name!r}")
    value = getattr(_import(home), name)
    globals()[name] = value
    return value


@without_collections
def _import(home: str) -> ModuleType:
    return import_module(home)


def __dir__() -> list[str]:
    return sorted(_HOMES)
