"""Making a history shorter without losing the task."""

from agentcore.condense.condenser import Condenser as Condenser
from agentcore.condense.condenser import CondenserSpec as CondenserSpec
from agentcore.condense.outline import Outline as Outline
from agentcore.condense.outline import OutlineItem as OutlineItem
from agentcore.condense.size import Measure as Measure
from agentcore.condense.window import DOWN_TO as DOWN_TO
from agentcore.condense.window import HARD as HARD
from agentcore.condense.window import SOFT as SOFT
from agentcore.condense.window import Window as Window
from agentcore.condense.window import oldest as oldest
from agentcore.condense.window import repair as repair
