from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.llm import LLM
from agentcore.llm.catalog import Features, ModelInfo, Surcharges, model_info, priced
from agentcore.usage import Usage

UNKNOWN = ModelInfo(Features(), None)
OWN = LLM(model="openai/any", input_cost_per_token=Decimal("0.01"), output_cost_per_token=Decimal("0.1"))
UNPRICED = LLM(model="openai/any")


def used(input_tokens: int = 0, output_tokens: int = 0, *, kept: int = 0, keeping: int = 0, thought: int = 0) -> Usage:
    return Usage(
        requests=1,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=kept,
        cache_write_tokens=keeping,
        reasoning_tokens=thought,
    )


async def cost(model: str, usage: Usage) -> Decimal | None:
    llm = LLM(model=model)
    return priced(await model_info(llm), llm, usage).cost


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        # 1000 fresh at 3, 6000 kept at 0.30, 3000 to be kept at 3.75, 500 written at 15 dollars a million.
        ("anthropic/claude-sonnet-4-5", used(10_000, 500, kept=6000, keeping=3000), "0.02355"),
        # Above a threshold all tokens cost more: 100 000 at 1.25, 100 000 kept at 0.125, 10 written at 10 ...
        ("gemini/gemini-2.5-pro", used(200_000, 10, kept=100_000), "0.1376"),
        # ... and 100 001 at 2.50, 100 000 kept at 0.25, 10 written at 15.
        ("gemini/gemini-2.5-pro", used(200_001, 10, kept=100_000), "0.2751525"),
        ("dashscope/qwen3-max", used(32_000), "0.0384"),
        ("dashscope/qwen3-max", used(32_001), "0.0768024"),
        ("dashscope/qwen3-max", used(128_000), "0.3072"),
        ("dashscope/qwen3-max", used(128_001), "0.384003"),
        # Where above means from, the price changes one token earlier.
        ("xai/grok-4.20", used(199_999), "0.24999875"),
        ("xai/grok-4.20", used(200_000), "0.5"),
        # Thinking has a price of its own: 100 read at 2, 30 written at 8, 70 thought at 3.
        ("perplexity/sonar-deep-research", used(100, 100, thought=70), "0.00065"),
        # What was kept costs as much as the rest where no price says otherwise.
        ("openai/o3-pro", used(1000, 10), "0.0208"),
        ("openai/o3-pro", used(1000, 10, kept=500, keeping=500), "0.0208"),
        ("ollama/llama3", used(10, 1), "0"),
    ],
)
async def test_each_token_is_paid_once_for_what_it_was(model: str, usage: Usage, dollars: str) -> None:
    assert await cost(model, usage) == Decimal(dollars)


async def test_a_reply_that_counted_nothing_has_no_known_price() -> None:
    assert await cost("openai/gpt-4o", used()) is None
    assert priced(UNKNOWN, OWN, used()).cost is None
    unknown = priced(UNKNOWN, UNPRICED, used(10, 1))
    assert (unknown.cost, unknown.unpriced_requests, unknown.known_cost) == (None, 1, 0)


async def test_the_providers_word_goes_before_the_table_and_the_users_before_both() -> None:
    llm = LLM(model="openai/gpt-4o")
    info = await model_info(llm)
    assert priced(info, llm, used(1000), reported=0.1 + 0.2).cost == Decimal("0.3")
    assert priced(UNKNOWN, llm, used(), reported=0.0).cost == 0
    assert priced(info, OWN, used(10, 2), reported=5.0).cost == Decimal("0.3")


def test_the_users_price_of_cached_input_is_the_price_of_input_where_he_says_none() -> None:
    usage = used(100, 0, kept=40, keeping=10)
    some = OWN.model_copy(update={"cache_read_cost_per_token": "0.001"})
    both = some.model_copy(update={"cache_write_cost_per_token": "0.02"})
    assert [priced(UNKNOWN, llm, usage).cost for llm in (OWN, some, both)] == [
        Decimal("1.00"),
        Decimal("0.64"),
        Decimal("0.74"),
    ]


def test_a_part_that_is_larger_than_the_whole_is_not_paid_twice() -> None:
    assert priced(UNKNOWN, OWN, used(10, 1, kept=50, keeping=50, thought=9)).cost == Decimal("0.2")


@given(
    read=st.integers(0, 2_000_000),
    written=st.integers(0, 200_000),
    kept=st.integers(0, 2_000_000),
    keeping=st.integers(0, 2_000_000),
    price=st.decimals(0, 1, places=9),
)
def test_one_price_for_all_input_is_that_price_however_it_was_read(
    read: int, written: int, kept: int, keeping: int, price: Decimal
) -> None:
    llm = LLM(model="openai/any", input_cost_per_token=price, output_cost_per_token=price)
    found = priced(UNKNOWN, llm, used(read, written, kept=kept, keeping=keeping)).cost
    assert found == (None if read + written == 0 else (read + written) * price)


async def test_what_is_kept_for_an_hour_is_written_at_twice_the_price_of_input() -> None:
    llm = LLM(model="anthropic/claude-sonnet-4-5")
    surcharges = Surcharges(hour_cache_tokens=1000)
    # 1000 for an hour at 6, 2000 for five minutes at 3.75 dollars a million.
    found = priced(await model_info(llm), llm, used(3000, keeping=3000), surcharges=surcharges)
    assert found.cost == Decimal("0.0135")


async def test_searches_and_other_models_are_paid_besides() -> None:
    llm = LLM(model="anthropic/claude-sonnet-4-5")
    info = await model_info(llm)
    advice = (("anthropic/claude-opus-4-5", used(1000, 100)),)
    # 1000 read at 3; another model's 1000 read at 5 and 100 written at 25; two searches at a cent.
    both = Surcharges(searches=2, other_models=advice)
    assert priced(info, llm, used(1000), surcharges=both).cost == Decimal("0.0305")
    unknown = Surcharges(other_models=(("anthropic/nobody", used(1)),))
    assert priced(info, llm, used(1000), surcharges=unknown).cost is None
    # Whoever has prices of his own has them for all of it.
    assert priced(info, OWN, used(10, 1), surcharges=both).cost == priced(info, OWN, used(10, 1)).cost
