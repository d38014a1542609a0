"""Models: the protocol they share, what they say, and `LLM`, which speaks to providers."""

from agentcore.llm.deltas import Delta as Delta
from agentcore.llm.deltas import ReasoningDelta as ReasoningDelta
from agentcore.llm.deltas import ResetDelta as ResetDelta
from agentcore.llm.deltas import TextDelta as TextDelta
from agentcore.llm.deltas import ToolCallDelta as ToolCallDelta
from agentcore.llm.deltas import deltas_of as deltas_of
from agentcore.llm.estimate import estimate_tokens as estimate_tokens
from agentcore.llm.fallback import MOVES_ON as MOVES_ON
from agentcore.llm.fallback import FallbackLLM as FallbackLLM
from agentcore.llm.llm import LLM as LLM
from agentcore.llm.model import CallContext as CallContext
from agentcore.llm.model import DeltaStream as DeltaStream
from agentcore.llm.model import Model as Model
from agentcore.llm.model import RetryReport as RetryReport
from agentcore.llm.reply import Reply as Reply
from agentcore.llm.retry import RetryingModel as RetryingModel
from agentcore.llm.retry import RetryPolicy as RetryPolicy
from agentcore.llm.router import ModelRequest as ModelRequest
from agentcore.llm.router import RouterLLM as RouterLLM
from agentcore.llm.router import Selector as Selector
from agentcore.llm.router import at_random as at_random
from agentcore.llm.router import by_length as by_length
from agentcore.llm.router import by_media as by_media
