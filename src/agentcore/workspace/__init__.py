"""Workspaces, where tools act: the protocol, and this machine as one."""

from agentcore.workspace.abilities import ExplainsKills as ExplainsKills
from agentcore.workspace.abilities import Fenceable as Fenceable
from agentcore.workspace.abilities import Labelled as Labelled
from agentcore.workspace.abilities import explain_exit as explain_exit
from agentcore.workspace.abilities import fence_workspace as fence_workspace
from agentcore.workspace.capture import run_to_end as run_to_end
from agentcore.workspace.links import real_paths as real_paths
from agentcore.workspace.local import LocalWorkspace as LocalWorkspace
from agentcore.workspace.ports import Exposed as Exposed
from agentcore.workspace.protocol import Command as Command
from agentcore.workspace.protocol import Process as Process
from agentcore.workspace.protocol import Workspace as Workspace
from agentcore.workspace.registry import WorkspaceFactory as WorkspaceFactory
from agentcore.workspace.registry import WorkspaceRegistry as WorkspaceRegistry
from agentcore.workspace.registry import register_workspace as register_workspace
from agentcore.workspace.registry import resolve_workspace as resolve_workspace
from agentcore.workspace.values import ChangeStatus as ChangeStatus
from agentcore.workspace.values import CommandResult as CommandResult
from agentcore.workspace.values import Entry as Entry
from agentcore.workspace.values import EntryKind as EntryKind
from agentcore.workspace.values import GitChange as GitChange
from agentcore.workspace.values import Output as Output
from agentcore.workspace.values import RecordableWorkspace as RecordableWorkspace
from agentcore.workspace.values import WorkspaceSpec as WorkspaceSpec
from agentcore.workspace.values import record_workspace as record_workspace
