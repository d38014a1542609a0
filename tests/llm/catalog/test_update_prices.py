from __future__ import annotations

import json
from typing import Any

import pytest
from update_prices import TABLE, litellm_list, rows, written

from agentcore.llm.catalog.models import parse

PRICED: dict[str, Any] = {
    "litellm_provider": "acme",
    "mode": "chat",
    "input_cost_per_token": 1e-06,
    "output_cost_per_token": 2e-06,
}


def row(**entry: Any) -> dict[str, Any]:
    return rows({"acme/a": {**PRICED, **entry}})["acme/a"]


def test_the_table_is_what_the_installed_list_makes_of_it() -> None:
    try:
        source, listed = litellm_list()
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    shipped = json.loads(TABLE.read_text(encoding="utf-8"))
    if source != shipped["source"]:
        pytest.skip(f"the table was made from {shipped['source']}, and here is {source}")
    assert rows(listed) == shipped["models"]


def test_the_table_is_small_sorted_and_one_line_per_model() -> None:
    text = TABLE.read_text(encoding="utf-8")
    names = list(parse(text).rows)
    assert names == sorted(names)
    assert len(text.splitlines()) == len(names) + 2
    assert len(text) < 700_000
    assert len(names) > 3000


def test_a_table_is_read_as_it_was_written() -> None:
    made = rows({"acme/b": PRICED, "acme/a": {**PRICED, "mode": "responses", "supports_vision": False}})
    read = parse(written("litellm 1", "2026-01-02", made))
    assert (read.source, read.date, list(read.rows)) == ("litellm 1", "2026-01-02", ["acme/a", "acme/b"])
    assert read.info("acme/a").features.mode == "responses"
    assert read.info("acme/a").features.vision is False
    assert read.info("acme/b").features.vision is None


def test_what_nobody_can_ask_for_text_is_left_out() -> None:
    listed = {
        "acme/pictures": {**PRICED, "mode": "image_generation"},
        "bedrock/*/1-month-commitment/a": PRICED,
        "together-ai-up-to-4b": PRICED,
    }
    assert rows(listed) == {}


@pytest.mark.parametrize(
    ("entry", "dollars"),
    [
        # A price that is not the whole price is none, and one of nothing is a price.
        ({"input_cost_per_token": None}, None),
        ({"output_cost_per_token": None}, None),
        ({"input_cost_per_request": 0.005}, None),
        ({"input_cost_per_token": 0.0, "output_cost_per_token": 0.0, "input_cost_per_second": 0.001}, None),
        ({"input_cost_per_token": 0.0, "output_cost_per_token": 0}, {"input": 0, "output": 0}),
        # The dust of floats is no part of it.
        ({"input_cost_per_token": 2.4997000000000006e-07}, {"input": 0.24997, "output": 2}),
        # A price of writing below that of reading is left out.
        ({"cache_creation_input_token_cost": 0.0}, {"input": 1, "output": 2}),
        ({"cache_creation_input_token_cost_above_200k_tokens": 1e-7}, {"input": 1, "output": 2}),
        ({"cache_creation_input_token_cost": 1.25e-6}, {"input": 1, "output": 2, "cache_write": 1.25}),
    ],
)
def test_a_price_is_the_whole_price_in_dollars_a_million(entry: dict[str, Any], dollars: Any) -> None:
    made = row(**entry)
    assert made.get("dollars") == dollars
    assert "above" not in made


def test_thresholds_build_on_each_other() -> None:
    made = row(input_cost_per_token_above_200k_tokens=4e-6, output_cost_per_token_above_128k_tokens=3e-6)
    assert made["above"] == {"128000": {"output": 3}, "200000": {"output": 3, "input": 4}}
    assert row(litellm_provider="xai", input_cost_per_token_above_128k_tokens=4e-6)["above"] == {"127999": {"input": 4}}


def test_a_tier_takes_nothing_over_from_another() -> None:
    tiers = [
        {"range": [1000, 2000], "input_cost_per_token": 3e-6},
        {"range": [0, 1000], "input_cost_per_token": 1e-6, "cache_read_input_token_cost": 5e-7},
    ]
    made = row(tiered_pricing=tiers)
    assert made["dollars"] == {"input": 1, "output": 2, "cache_read": 0.5}
    assert made["above"] == {"1000": {"cache_read": 3, "input": 3, "output": 2}}


def test_what_is_not_said_of_a_model_stays_unsaid() -> None:
    made = row(supports_vision=True, supports_reasoning=False, max_input_tokens=5)
    assert made == {
        "by": "acme",
        "reads": 5,
        "can": "vision",
        "cannot": "reasoning",
        "dollars": {"input": 1, "output": 2},
    }
    assert row(supported_modalities=["text"])["cannot"] == "vision"
    assert row(cache_read_input_token_cost=5e-7)["can"] == "prompt_caching"
