"""What happened, and what is true because of it: the log, its stores, and the state that it folds to."""

from agentcore.record.branch import branch_ranges as branch_ranges
from agentcore.record.branch import events_of_branch as events_of_branch
from agentcore.record.codec import BLOB_THRESHOLD as BLOB_THRESHOLD
from agentcore.record.files import Disk as Disk
from agentcore.record.files import Durability as Durability
from agentcore.record.files import FileStore as FileStore
from agentcore.record.files import RealDisk as RealDisk
from agentcore.record.files import RepairReport as RepairReport
from agentcore.record.log import EventLog as EventLog
from agentcore.record.log import LogReader as LogReader
from agentcore.record.log import read_log as read_log
from agentcore.record.memory import MemoryStore as MemoryStore
from agentcore.record.open_action import OpenAction as OpenAction
from agentcore.record.state import ConversationState as ConversationState
from agentcore.record.state import ShownEvent as ShownEvent
from agentcore.record.status import TRANSITIONS as TRANSITIONS
from agentcore.record.status import Trigger as Trigger
from agentcore.record.status import next_status as next_status
from agentcore.record.store import LogInfo as LogInfo
from agentcore.record.store import Record as Record
from agentcore.record.store import Store as Store
from agentcore.record.store import StoredLog as StoredLog
from agentcore.record.store import check_append as check_append
from agentcore.record.upgrade import FORMAT_VERSION as FORMAT_VERSION
from agentcore.record.upgrade import upgrade as upgrade
