"""Models: the protocol they share, what they say, and `LLM`, which speaks to providers."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from agentcore._lazy import lazy_names as _lazy_names
from agentcore.llm.addresses import allow_base_url as allow_base_url
from agentcore.llm.estimate import estimate_tokens as estimate_tokens
from agentcore.llm.features import Features as Features
from agentcore.llm.llm import LLM as LLM
from agentcore.llm.model import CallContext as CallContext
from agentcore.llm.model import DeltaStream as DeltaStream
from agentcore.llm.model import Model as Model
from agentcore.llm.model import ResponseSchema as ResponseSchema
from agentcore.llm.model import RetryReport as RetryReport
from agentcore.llm.model import describe_unrecorded as describe_unrecorded
from agentcore.llm.model import model_features as model_features
from agentcore.llm.model import record_model as record_model
from agentcore.llm.parsing import Parsed as Parsed
from agentcore.llm.parsing import parse as parse
from agentcore.llm.parsing import parse_reply as parse_reply
from agentcore.llm.recording import MODEL_ENTRY_POINTS as MODEL_ENTRY_POINTS
from agentcore.llm.recording import ModelFactory as ModelFactory
from agentcore.llm.recording import register_model as register_model
from agentcore.llm.recording import restore_model as restore_model
from agentcore.llm.reply import Delta as Delta
from agentcore.llm.reply import ReasoningDelta as ReasoningDelta
from agentcore.llm.reply import RefusalDelta as RefusalDelta
from agentcore.llm.reply import Reply as Reply
from agentcore.llm.reply import ResetDelta as ResetDelta
from agentcore.llm.reply import TextDelta as TextDelta
from agentcore.llm.reply import TokenLogprob as TokenLogprob
from agentcore.llm.reply import ToolCallDelta as ToolCallDelta
from agentcore.llm.reply import deltas_of as deltas_of
from agentcore.llm.retry import RetryingModel as RetryingModel
from agentcore.llm.retry import RetryPolicy as RetryPolicy
from agentcore.llm.wrapper import ModelRequest as ModelRequest

if _TYPE_CHECKING:
    from agentcore.llm.concurrency import AdaptiveLimiter as AdaptiveLimiter
    from agentcore.llm.concurrency import LimitedModel as LimitedModel
    from agentcore.llm.fallback import FALLBACK_ERRORS as FALLBACK_ERRORS
    from agentcore.llm.fallback import FallbackLLM as FallbackLLM
    from agentcore.llm.rate_limit import RateLimitedModel as RateLimitedModel
    from agentcore.llm.rate_limit import TokenBucket as TokenBucket
    from agentcore.llm.router import RouterLLM as RouterLLM
    from agentcore.llm.router import Selector as Selector
    from agentcore.llm.router import at_random as at_random
    from agentcore.llm.router import by_length as by_length
    from agentcore.llm.router import by_media as by_media

# The wrappers, which few programs use: whoever only imports agentcore does not pay for them.
__getattr__ = _lazy_names(
    __name__,
    {
        "AdaptiveLimiter": "agentcore.llm.concurrency",
        "LimitedModel": "agentcore.llm.concurrency",
        "FALLBACK_ERRORS": "agentcore.llm.fallback",
        "FallbackLLM": "agentcore.llm.fallback",
        "RateLimitedModel": "agentcore.llm.rate_limit",
        "TokenBucket": "agentcore.llm.rate_limit",
        "RouterLLM": "agentcore.llm.router",
        "Selector": "agentcore.llm.router",
        "at_random": "agentcore.llm.router",
        "by_length": "agentcore.llm.router",
        "by_media": "agentcore.llm.router",
    },
)
