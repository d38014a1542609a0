"""Every event that can stand in a log, as one written-out union with literal kinds.

A file's `__all__` is the list of what it adds to this index: a new kind is added beside its class, to that list and to the
union at the end of the file.
"""

from agentcore.events.base import *
from agentcore.events.bookkeeping import *
from agentcore.events.checkpoints import *
from agentcore.events.facts import *
from agentcore.events.shown import *
from agentcore.events.union import *
