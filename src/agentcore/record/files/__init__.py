"""Logs on disk."""

from agentcore.record.files.disk import Disk as Disk
from agentcore.record.files.disk import RealDisk as RealDisk
from agentcore.record.files.log import Durability as Durability
from agentcore.record.files.repair import RepairReport as RepairReport
from agentcore.record.files.store import FileStore as FileStore
