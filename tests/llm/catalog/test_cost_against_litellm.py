"""Our arithmetic beside litellm's, over a good part of the table; what differs on purpose is said here."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
import pytest
from update_prices import litellm_list

from agentcore.errors import MissingExtra
from agentcore.llm import LLM
from agentcore.llm.catalog import model_info, priced
from agentcore.llm.catalog.models import table
from agentcore.llm.litellm_route.library import litellm
from agentcore.usage import Usage

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.filterwarnings("ignore:.*Accessing the .* attribute on the instance is deprecated"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),
]

USAGES = [
    Usage(requests=1, input_tokens=1000, output_tokens=300),
    Usage(requests=1, input_tokens=90_000, output_tokens=3000, cache_read_tokens=70_000, reasoning_tokens=1000),
    Usage(requests=1, input_tokens=90_000, output_tokens=3000, cache_read_tokens=50_000, cache_write_tokens=30_000),
    Usage(requests=1, input_tokens=300_000, output_tokens=3000, cache_read_tokens=150_000, cache_write_tokens=30_000),
    Usage(requests=1, input_tokens=150_000, output_tokens=30, cache_read_tokens=20_000),
    Usage(requests=1, input_tokens=200_000, output_tokens=30),
    Usage(requests=1, input_tokens=128_000, output_tokens=30),
    Usage(requests=1, input_tokens=600_000, output_tokens=30, cache_read_tokens=50_000),
]
ALWAYS = {
    "claude-sonnet-4-5", "gpt-4o", "gpt-5.5", "gpt-5.6", "gemini/gemini-2.5-pro", "dashscope/qwen3-max", "xai/grok-4.20",
    "dashscope/qwen-plus-2025-07-28",
}  # fmt: skip


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """On asyncio, as litellm does."""
    return "asyncio"


@pytest.mark.slow  # of thousands of models
async def test_what_a_call_costs_is_what_litellm_says() -> None:
    try:
        library = await litellm()
    except MissingExtra as error:
        pytest.skip(str(error))
    known = await table()
    source, listed = await anyio.to_thread.run_sync(litellm_list)
    if source != known.source:
        pytest.skip(f"the table was made from {known.source}, and here is {source}")
    compared = 0
    for number, (name, row) in enumerate(known.rows.items()):
        if "dollars" not in row or (number % 100 and name not in ALWAYS):
            continue
        if it_resolves_otherwise(name, row["by"]):
            continue
        family: str = row["by"].removesuffix("_converse").partition("-")[0]
        llm = LLM(model=name if name.startswith(f"{family}/") else f"{family}/{name}")
        info = await model_info(llm)
        for usage in USAGES:
            if usage.cache_read_tokens and row["by"] == "perplexity":
                continue  # it bills what was kept as if it were fresh
            if usage.cache_write_tokens and writes_too_cheaply(listed[name]):
                continue  # a price of storing, which it takes for the price of reading
            ours = priced(info, llm, usage).cost
            assert ours is not None
            assert float(ours) == pytest.approx(costs(library, llm, usage), abs=1e-9), (llm.model, usage)
            compared += 1
    assert compared > 250


def it_resolves_otherwise(name: str, provider: str) -> bool:
    """Whether litellm takes a name for another: it splits vertex_ai/deepseek-ai/... and perplexity/perplexity/..."""
    if provider.startswith("vertex_ai"):
        return name.count("/") > 1
    return provider == "cohere_chat" or name.startswith(f"{provider}/{provider}/")


def writes_too_cheaply(entry: Any) -> bool:
    written = [(key, price) for key, price in entry.items() if key.startswith("cache_creation_input_token_cost")]
    return any(
        price < (entry.get(key.replace("cache_creation_input_token_cost", "input_cost_per_token")) or 0)
        for key, price in written
    )


def costs(library: Any, llm: LLM, usage: Usage) -> float:
    counted = library.Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details={
            "cached_tokens": usage.cache_read_tokens,
            "cache_creation_tokens": usage.cache_write_tokens,
        },
        completion_tokens_details={"reasoning_tokens": usage.reasoning_tokens},
    )
    provider, _, model = llm.model.partition("/")
    return sum(library.cost_per_token(model=model, custom_llm_provider=provider, usage_object=counted))
