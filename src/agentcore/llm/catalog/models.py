"""The table of models that is shipped, the look-up of a model in it, and the cost of a call.

The cost is by the user's prices, by what the provider reports, or by the table. Unknown stays unknown.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from agentcore._threads import Threads
from agentcore.llm.model import Features
from agentcore.llm.settings import LLMSettings
from agentcore.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars per token."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    """Of input tokens that the provider had kept."""
    cache_write: Decimal
    """Of input tokens that it keeps from now on."""
    reasoning: Decimal
    """Of output tokens that are thinking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of the tokens of a request, by how many it has read."""

    base: Rates
    above: tuple[tuple[int, Rates], ...] = ()
    """The rates for all tokens of a request that has read more than so many, the largest number first."""

    def rates(self, input_tokens: int) -> Rates:
        """Return the rates of a request that has read so many tokens."""
        return next((rates for limit, rates in self.above if input_tokens > limit), self.base)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Features and prices of one model."""

    features: Features
    prices: Prices | None
    """None where they are not known."""


FILE = "models.json"
ABILITIES = ("vision", "pdf", "tool_calls", "reasoning", "prompt_caching", "response_schema")
"""The features that a row of the table lists under "can" and "can't"."""

_reading = threading.Lock()
_read: Table | None = None
_threads = Threads("llm_catalog", 1)


@dataclass(frozen=True, slots=True)
class Table:
    """All models that are known."""

    source: str
    """Where the facts come from, as in "litellm 1.106.2"."""
    date: str
    """The day on which they were taken from there."""
    rows: Mapping[str, Mapping[str, Any]]
    """By litellm's name of the model."""

    def provider(self, name: str) -> str | None:
        """Return the provider of the model with that name, as litellm names it; None if the table has none."""
        row = self.rows.get(name)
        return None if row is None else row["by"]

    def info(self, name: str) -> ModelInfo:
        """Return the features and prices of a model in the table."""
        row = self.rows[name]
        return ModelInfo(_features(row), _prices(row))


async def table() -> Table:
    """Return the table; it is read once, in a thread."""
    if _read is not None:
        return _read
    # One thread reads; a thousand conversations that start at once wait for it here and not in threads.
    return await _threads.run(_load, abandon_on_cancel=True)


def table_nowait() -> Table | None:
    """Return the table, if it was read already."""
    return _read


def _load() -> Table:
    global _read  # noqa: PLW0603 - the table is read once per process
    with _reading:
        if _read is None:
            _read = parse(files("agentcore.llm.catalog").joinpath(FILE).read_text(encoding="utf-8"))
    return _read


def parse(text: str) -> Table:
    """Read a table."""
    written: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return Table(written["source"], written["date"], written["models"])


def _features(row: Mapping[str, Any]) -> Features:
    known: dict[str, Any] = dict.fromkeys(row.get("can", "").split(), True)
    known |= dict.fromkeys(row.get("cannot", "").split(), False)
    known |= {"context_window": row.get("reads"), "max_output_tokens": row.get("writes")}
    # Not checked here: the table was when it was made.
    return Features.model_construct(mode=row.get("mode", "chat"), **known)


def _prices(row: Mapping[str, Any]) -> Prices | None:
    base: dict[str, Any] | None = row.get("dollars")
    if base is None:
        return None
    above: dict[str, dict[str, Any]] = row.get("above", {})
    tiers = sorted(((int(limit), _rates(base | changed)) for limit, changed in above.items()), reverse=True, key=_limit)
    return Prices(base=_rates(base), above=tuple(tiers))


def _limit(tier: tuple[int, Rates]) -> int:
    return tier[0]


def _rates(dollars: Mapping[str, Any]) -> Rates:
    def rate(name: str, otherwise: str) -> Decimal:
        """Dollars per million as dollars per token."""
        return Decimal(dollars.get(name, dollars[otherwise])).scaleb(-6)

    return Rates(
        input=rate("input", "input"),
        output=rate("output", "output"),
        cache_read=rate("cache_read", "input"),
        cache_write=rate("cache_write", "input"),
        reasoning=rate("reasoning", "output"),
    )


_FAMILIES = {
    "ai21_chat": "ai21",
    "anthropic_text": "anthropic",
    "azure_text": "azure",
    "bedrock_converse": "bedrock",
    "cohere_chat": "cohere",
    "ollama_chat": "ollama",
    "sagemaker_chat": "sagemaker",
    "text-completion-codestral": "codestral",
    "text-completion-inception": "inception",
    "text-completion-openai": "openai",
    "watsonx_text": "watsonx",
}
"""Names of litellm's for other interfaces of the same provider."""

_FINE_TUNED = re.compile(r"^(ft:[^:]+):.*$")
_ROUTES = ("converse/", "invoke/", "responses/")
"""Interfaces that a name of litellm may have between the provider and the model."""

_UNKNOWN = ModelInfo(Features.model_construct(), None)
_found: dict[str, ModelInfo] = {}


async def model_info(settings: LLMSettings) -> ModelInfo:
    """Return the features and prices of a model; `settings.features` overrides the table.

    The first call of a process reads the table, in a thread; after that nothing is waited for.
    """
    info = _found.get(settings.model)
    if info is None:
        known = await table()
        # Of several callers that waited for the table, all get what the first one has looked up.
        info = _found.setdefault(settings.model, _look_up(known, settings.model))
    if info.prices is not None and _sold_by_another(settings):
        info = ModelInfo(info.features, None)
    if own_features := {
        name: value
        for name in settings.features.model_fields_set
        if (value := getattr(settings.features, name)) is not None
    }:
        info = ModelInfo(info.features.model_copy(update=own_features), info.prices)
    return info


def known_prices(model: str) -> Prices | None:
    """Return the prices of another model, once the table was read."""
    known = table_nowait()
    return None if known is None else _look_up(known, model).prices


def _look_up(known: Table, model: str) -> ModelInfo:
    return next((known.info(name) for name in _names(known, model)), _UNKNOWN)


def _names(known: Table, model: str) -> Iterator[str]:
    """Return the names under which a model is in the table, the most exact one first."""
    provider, _, bare = model.partition("/")
    family = _family(provider)
    spelled = [bare, *(bare.removeprefix(route) for route in _ROUTES if bare.startswith(route))]
    spelled += [tuned[1] for name in spelled if (tuned := _FINE_TUNED.match(name))]
    for name in spelled:
        for full in dict.fromkeys((f"{provider}/{name}", f"{family}/{name}")):
            if full in known.rows:
                yield full
        # Several sell models of one name: the bare name has the price of the seller that is listed with it only.
        seller = known.provider(name)
        if seller is not None and _family(seller) == family:
            yield name


def _family(provider: str) -> str:
    return "vertex_ai" if provider.startswith("vertex_ai") else _FAMILIES.get(provider, provider)


def _sold_by_another(settings: LLMSettings) -> bool:
    """Return whether this is a compatible server, which may use a name of OpenAI's for any model at any price."""
    if settings.base_url is None or settings.provider != "openai":
        return False
    host = urlsplit(settings.base_url).hostname or ""
    return host != "openai.com" and not host.endswith(".openai.com")


_FOR_AN_HOUR = 2
"""How many times the price of input Anthropic asks for what it keeps an hour: docs.claude.com, "Prompt caching"."""
_SEARCH = Decimal("0.01")
"""US dollars for a search that Anthropic makes: docs.claude.com, "Web search tool"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surcharges:
    """Costs of a reply besides its tokens at their usual price."""

    hour_cache_tokens: int = 0
    """Of the tokens that are written to the cache, those that are kept for an hour."""
    searches: int = 0
    """Searches of the provider that are paid one by one."""
    other_models: Sequence[tuple[str, Usage]] = ()
    """Usage of other models that the provider called for this reply, by name."""


_NONE = Surcharges()


def priced(
    info: ModelInfo,
    settings: LLMSettings,
    usage: Usage,
    *,
    reported: float | None = None,
    surcharges: Surcharges = _NONE,
) -> Usage:
    """Add the cost to the usage of one call.

    Args:
        info: What is known of the model.
        settings: They may have prices; those go before all others.
        usage: What the provider counted.
        reported: US dollars, where the provider says what it charged.
        surcharges: What it costs besides.
    """
    cost = _cost(info, settings, usage, reported=reported, surcharges=surcharges)
    return usage.model_copy(update={"unpriced_requests": 1} if cost is None else {"known_cost": cost})


def _cost(
    info: ModelInfo, settings: LLMSettings, usage: Usage, *, reported: float | None, surcharges: Surcharges
) -> Decimal | None:
    own = _own_prices(settings)
    if own is None and reported is not None:
        return _dollars(reported)
    prices = own or info.prices
    # Where nothing was counted, the provider did not say what it used.
    if prices is None or not usage.total_tokens:
        return None
    if own is not None:
        return _sum(own.rates(usage.input_tokens), usage)
    total = _sum(prices.rates(usage.input_tokens), usage, surcharges.hour_cache_tokens)
    for model, used in surcharges.other_models:
        others = known_prices(model)
        if others is None:
            return None
        total += _sum(others.rates(used.input_tokens), used)
    return total + surcharges.searches * _SEARCH


def _own_prices(settings: LLMSettings) -> Prices | None:
    read, write = settings.input_cost_per_token, settings.output_cost_per_token
    if read is None or write is None:
        return None
    kept, keeping = settings.cache_read_cost_per_token, settings.cache_write_cost_per_token
    return Prices(
        base=Rates(
            input=read,
            output=write,
            cache_read=read if kept is None else kept,
            cache_write=read if keeping is None else keeping,
            reasoning=write,
        )
    )


def _sum(rates: Rates, usage: Usage, for_an_hour: int = 0) -> Decimal:
    # The counts are inclusive. A part that is larger than its whole is a provider's mistake: no tokens are paid twice.
    kept = min(usage.cache_read_tokens, usage.input_tokens)
    keeping = min(usage.cache_write_tokens, usage.input_tokens - kept)
    longer = min(for_an_hour, keeping)
    thought = min(usage.reasoning_tokens, usage.output_tokens)
    return _dollars(
        (usage.input_tokens - kept - keeping) * rates.input
        + kept * rates.cache_read
        + (keeping - longer) * rates.cache_write
        + longer * rates.input * _FOR_AN_HOUR
        + (usage.output_tokens - thought) * rates.output
        + thought * rates.reasoning
    )


def _dollars(amount: Decimal | float) -> Decimal:
    # A price is a few digits; what a float adds behind the twelfth is not a price.
    return Decimal(f"{amount:.12f}".rstrip("0").rstrip("."))
