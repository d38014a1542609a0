"""Tokens, cost, and limits on them."""

from agentcore.usage.limits import Limits as Limits
from agentcore.usage.tokens import Usage as Usage
