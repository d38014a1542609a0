"""Where tools act: the protocol of a workspace, and this machine as one."""

from agentcore.workspace.capture import run_to_end as run_to_end
from agentcore.workspace.local import LocalWorkspace as LocalWorkspace
from agentcore.workspace.protocol import Command as Command
from agentcore.workspace.protocol import Process as Process
from agentcore.workspace.protocol import Workspace as Workspace
from agentcore.workspace.values import ChangeStatus as ChangeStatus
from agentcore.workspace.values import CommandResult as CommandResult
from agentcore.workspace.values import Entry as Entry
from agentcore.workspace.values import EntryKind as EntryKind
from agentcore.workspace.values import GitChange as GitChange
from agentcore.workspace.values import Output as Output
