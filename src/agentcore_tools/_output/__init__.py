"""Output of any length: in bounded memory, whole on disk, and short enough for a model."""

from agentcore_tools._output.kept import Kept as Kept
from agentcore_tools._output.kept import find_gap as find_gap
from agentcore_tools._output.left import find_left as find_left
from agentcore_tools._output.left import left_mark as left_mark
from agentcore_tools._output.shorten import TEXT_LIMIT as TEXT_LIMIT
from agentcore_tools._output.shorten import shorten as shorten
from agentcore_tools._output.whole import WHOLE_BYTES as WHOLE_BYTES
from agentcore_tools._output.whole import Whole as Whole
