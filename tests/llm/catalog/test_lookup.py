from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import pytest

from agentcore.llm import LLM
from agentcore.llm.catalog import Features, ModelInfo, Prices, model_info
from agentcore.llm.catalog.models import table


async def dollars_per_million(model: str, **settings: Any) -> tuple[float, float] | None:
    prices = (await model_info(LLM(model=model, **settings))).prices
    return None if prices is None else (float(prices.base.input * 10**6), float(prices.base.output * 10**6))


async def test_a_model_is_known_with_what_it_can_do_and_costs() -> None:
    info = await model_info(LLM(model="anthropic/claude-sonnet-4-5"))
    assert info.features == Features(
        context_window=200_000,
        max_output_tokens=64_000,
        vision=True,
        pdf=True,
        tool_calls=True,
        reasoning=True,
        prompt_caching=True,
        response_schema=True,
        mode="chat",
    )
    assert await dollars_per_million("anthropic/claude-sonnet-4-5") == (3, 15)


@pytest.mark.parametrize("model", ["openai/o3-pro", "openai/responses/o3-pro"])
async def test_a_model_of_the_other_interface_says_so(model: str) -> None:
    assert (await model_info(LLM(model=model))).features.mode == "responses"


@pytest.mark.parametrize(
    ("model", "same_as"),
    [
        ("openai/gpt-4o", "text-completion-openai/gpt-4o"),
        ("vertex_ai/gemini-2.5-pro", "vertex_ai_beta/gemini-2.5-pro"),
        (
            "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
            "bedrock/converse/anthropic.claude-sonnet-4-5-20250929-v1:0",
        ),
        ("cohere/command-a-03-2025", "cohere_chat/command-a-03-2025"),
        ("ollama/llama3", "ollama_chat/llama3"),
        ("openai/ft:gpt-4o-2024-08-06", "openai/ft:gpt-4o-2024-08-06:my-org:my-name:abc123"),
    ],
)
async def test_another_way_to_write_a_name_finds_the_same_model(model: str, same_as: str) -> None:
    found = await model_info(LLM(model=model))
    assert found == await model_info(LLM(model=same_as))
    assert found.prices is not None


@pytest.mark.parametrize(
    "model",
    [
        "groq/gpt-4o",  # OpenAI's, and nobody else's
        "openrouter/claude-sonnet-4-5",
        "gemini/medlm-large",  # one of Vertex AI
        "hosted_vllm/gpt-4o-mini",
        "azure/claude-sonnet-4-5",
    ],
)
async def test_a_bare_name_is_no_price_of_another_provider(model: str) -> None:
    known = await table()
    assert model.partition("/")[2] in known.rows
    assert await model_info(LLM(model=model)) == ModelInfo(Features(), None)


async def test_every_model_with_a_price_is_found_under_the_name_of_its_provider() -> None:
    known = await table()
    for name, row in known.rows.items():
        by: str = row["by"]
        family = "vertex_ai" if by.startswith("vertex_ai") else by.removesuffix("_converse")
        written = name if name.startswith(f"{family}/") else f"{family}/{name}"
        if written != name and written in known.rows:
            continue  # listed twice, and the exact name goes before the bare one
        info = await model_info(LLM.model_construct(model=written))
        assert info == known.info(name), written
        assert (info.prices is None) == ("dollars" not in row)


@pytest.mark.parametrize(
    ("model", "base_url", "price"),
    [
        ("openai/gpt-4o", "https://api.openai.com/v1", (2.5, 10)),
        ("openai/gpt-4o", "https://eu.api.openai.com/v1", (2.5, 10)),
        # Dated names are looked up as they are written, and those of other providers behind a proxy keep their price.
        ("openai/gpt-4o-2024-05-13", None, (5, 15)),
        ("anthropic/claude-sonnet-4-5", "http://localhost:1", (3, 15)),
    ],
)
async def test_a_name_has_the_price_of_its_provider(model: str, base_url: str | None, price: tuple[float, int]) -> None:
    assert await dollars_per_million(model, base_url=base_url) == price


@pytest.mark.parametrize(
    "base_url", ["http://localhost:8000/v1", "https://gateway.example/openai.com", "https://notopenai.com"]
)
async def test_a_name_of_openai_at_a_server_of_ones_own_has_no_price(base_url: str) -> None:
    own = await model_info(LLM(model="openai/gpt-4o", base_url=base_url))
    assert own.prices is None
    assert own.features.vision is True
    assert await dollars_per_million("gpt-4o", base_url=base_url) is None


async def test_what_the_user_knows_goes_before_the_table() -> None:
    llm = LLM(model="openai/gpt-4o", features=Features(vision=False, context_window=1000))
    listed = (await model_info(LLM(model="openai/gpt-4o"))).features
    features = (await model_info(llm)).features
    assert features == listed.model_copy(update={"vision": False, "context_window": 1000})
    assert LLM.model_validate(llm.record()) == llm
    restored = LLM.model_validate(llm.record())
    assert (await model_info(restored)).features == features
    unknown = LLM(model="qwen3:8b", base_url="http://localhost:11434/v1", features=Features(context_window=40_960))
    assert await model_info(unknown) == ModelInfo(Features(context_window=40_960), None)


async def test_many_who_ask_first_are_all_answered_from_one_reading() -> None:
    found: list[Prices | None] = []

    async def ask(number: int) -> None:
        found.append((await model_info(LLM(model="openai/gpt-4o", temperature=number / 100))).prices)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(ask, number)
    assert len(found) == 100
    assert all(prices is found[0] for prices in found)
    assert await table() is await table()


def test_neither_importing_agentcore_nor_making_a_model_loads_the_table() -> None:
    program = (
        "import sys, agentcore; agentcore.LLM(model='openai/gpt-4o').record()\n"
        "assert not [name for name in sys.modules if name.startswith('agentcore.llm.catalog')]\n"
        "import agentcore.llm.catalog.models as table\n"
        "assert table._read is None and 'litellm' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
