"""Features and prices of models."""

from agentcore.llm.catalog.models import Features as Features
from agentcore.llm.catalog.models import ModelInfo as ModelInfo
from agentcore.llm.catalog.models import Prices as Prices
from agentcore.llm.catalog.models import Rates as Rates
from agentcore.llm.catalog.models import Surcharges as Surcharges
from agentcore.llm.catalog.models import model_info as model_info
from agentcore.llm.catalog.models import priced as priced
