"""What the tools for files have in common: where they may go, how they read, change and show, and what they remember."""

from agentcore_tools.files.files import Files as Files
from agentcore_tools.files.files import open_files as open_files
from agentcore_tools.files.opening import opening as opening
from agentcore_tools.files.reach import Reach as Reach
