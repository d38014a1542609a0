"""Capabilities of each Claude: how its thinking is set, and which settings it refuses. A table, and its consequences.

From the provider's public documentation and its models' own refusals, as of autumn 2026. Who is no Claude, and speaks the
same interface, is told to think as the first of them were.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from agentcore.errors import BadRequest
from agentcore.llm.model import Features
from agentcore.llm.settings import LLMSettings

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""The beta header that a request needs for `block_binding`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCapabilities:
    """The settings that a model accepts."""

    thinking: Literal["never", "budget", "adaptive"]
    """How it is told to think: not at all, by a number of tokens, or by an effort."""
    efforts: tuple[str, ...] = ()
    """The efforts it knows, the smallest first."""
    always: bool = False
    """True if its thinking cannot be turned off."""
    omits_thinking: bool = False
    """True if it omits the text of its thinking unless asked for it."""
    binds_thinking: bool = False
    """True if it refuses thinking blocks when anything before them has changed."""
    sampling: Literal["both", "one", "none"] = "one"
    """Which of `temperature` and `top_p` it accepts."""


_UP_TO_MAX = ("low", "medium", "high", "max")
_ALL = ("low", "medium", "high", "xhigh", "max")

_NEVER = ClaudeCapabilities(thinking="never", sampling="both")
_FIRST = ClaudeCapabilities(thinking="budget", sampling="both")
_BUDGET = ClaudeCapabilities(thinking="budget")
_EITHER = ClaudeCapabilities(thinking="adaptive", efforts=_UP_TO_MAX)
_ADAPTIVE = ClaudeCapabilities(thinking="adaptive", efforts=_ALL, omits_thinking=True, sampling="none")
_ALWAYS = ClaudeCapabilities(thinking="adaptive", efforts=_ALL, always=True, omits_thinking=True, sampling="none")
_BOUND = ClaudeCapabilities(
    thinking="adaptive", efforts=_ALL, always=True, omits_thinking=True, binds_thinking=True, sampling="none"
)

_TABLE: tuple[tuple[str, tuple[int, int], ClaudeCapabilities], ...] = (
    # Families, the first version that is so, and how it is: the first row that fits. A version that nobody knows yet is
    # taken for one like the newest that is known.
    ("mythos", (0, 0), _ALWAYS),
    ("fable", (5, 1), _BOUND),
    ("fable", (0, 0), _ALWAYS),
    ("opus sonnet", (5, 1), _BOUND),
    ("opus sonnet haiku", (4, 7), _ADAPTIVE),
    ("opus sonnet haiku", (4, 6), _EITHER),
    ("opus sonnet haiku", (4, 0), _BUDGET),
    ("opus sonnet haiku", (3, 7), _FIRST),
    ("opus sonnet haiku", (0, 0), _NEVER),
)

_NAME = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)(?:-(\d{1,2})(?!\d))?(?:-(\d{1,2})(?!\d))?")
_OLD_NAME = re.compile(r"claude-(?:(\d)(?:-(\d)(?!\d))?-(opus|sonnet|haiku)|[12]\b|instant)")
_NEWEST = 99

_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 8192, "high": 16_384, "xhigh": 32_768, "max": 65_536}
"""Tokens to think with, for models that want a number."""
_SMALLEST_BUDGET = 1024

_REPLY = 8192
"""The longest reply where no limit is given."""
_REPLY_AT_ONCE = 21_000
"""The longest that is asked for without a stream: above, it may take ten minutes, after which callers have left."""


@lru_cache(maxsize=256)
def capabilities_for(model: str) -> ClaudeCapabilities:
    """Return the capabilities of a model, by its name."""
    name = model.lower().replace(".", "-")
    if found := _NAME.search(name):
        family, version = found[1], (int(found[2] or _NEWEST), int(found[3] or 0))
    elif found := _OLD_NAME.search(name):
        family, version = found[3] or "opus", (int(found[1] or 0), int(found[2] or 0))
    else:
        return _FIRST
    return next(ways for families, least, ways in _TABLE if family in families.split() and version >= least)


def drops_stale_thinking(settings: LLMSettings) -> bool:
    """Return whether to have the provider drop thinking when something before it has changed, instead of refusing it.

    Summaries take the place of what was said, and prompts change: that is no reason to end a conversation.
    """
    # Others may not know what it takes to say so; and who names betas himself has to name this one too.
    named = any(header.lower() == "anthropic-beta" for header in settings.extra_headers | settings.secret_headers)
    return settings.base_url is None and not named and capabilities_for(settings.model).binds_thinking


def longest_reply(settings: LLMSettings, features: Features, *, streamed: bool) -> int:
    """Return the output limit in tokens, which every request has to have."""
    if settings.max_output_tokens is not None:
        return settings.max_output_tokens
    known = features.max_output_tokens
    if known is not None:
        return known if streamed else min(known, _REPLY_AT_ONCE)
    return _REPLY + _BUDGETS.get(settings.reasoning_effort or "", 0)


def thinking(settings: LLMSettings, features: Features, longest: int) -> dict[str, Any]:
    """Write how much to think.

    Raises:
        BadRequest: The model can't do that, and something else was not asked for.
    """
    ways, effort = capabilities_for(settings.model), settings.reasoning_effort
    able = ways.thinking == "adaptive" or (ways.thinking == "budget" and features.reasoning is not False)
    bound = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}} if drops_stale_thinking(settings) else {}
    if effort is None:
        # Only what thinks in any case is bound so: to say so changes nothing.
        return {"thinking": {"type": "adaptive"} | bound} if bound else {}
    if effort == "none":
        if ways.always:
            raise BadRequest(
                f"{settings.model}: this model always thinks. Take reasoning_effort='low', or another model.",
                model=settings.model,
            )
        return {"thinking": {"type": "disabled"}} if able else {}
    if not able and settings.drop_params:
        return {}
    if ways.thinking == "adaptive":
        shown = {"display": "summarized"} if ways.omits_thinking else {}
        word = _effort(effort, ways) if settings.drop_params else effort
        return {"thinking": {"type": "adaptive"} | shown | bound, "output_config": {"effort": word}}
    return {"thinking": {"type": "enabled", "budget_tokens": _budget(settings, effort, longest)}}


def _effort(effort: str, ways: ClaudeCapabilities) -> str:
    """Return the model's largest effort up to the wanted one, or its smallest."""
    asked = _ALL.index(effort) if effort in _ALL else 0
    return max((word for word in ways.efforts if _ALL.index(word) <= asked), key=_ALL.index)


def _budget(settings: LLMSettings, effort: str, longest: int) -> int:
    # The words of the reply need room as well.
    budget = min(_BUDGETS[effort], longest * 4 // 5)
    if budget < _SMALLEST_BUDGET:
        raise BadRequest(
            f"{settings.model}: a reply of {longest:,} tokens leaves no room to think in. Raise max_output_tokens above "
            f"{_SMALLEST_BUDGET * 5 // 4:,}, or leave reasoning_effort out.",
            model=settings.model,
        )
    return budget


def sampling(settings: LLMSettings, *, thinks: bool) -> dict[str, float]:
    """Write how random the reply is, as far as the model takes it."""
    given = {"temperature": settings.temperature, "top_p": settings.top_p}
    wanted = {name: value for name, value in given.items() if value is not None}
    if not settings.drop_params:
        return wanted
    taken = capabilities_for(settings.model).sampling
    if thinks or taken == "none":
        return {}
    if taken == "one" and len(wanted) == 2:
        del wanted["top_p"]
    return wanted
