"""Real calls through litellm to a server on the loopback. In one file, because importing litellm takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from blockbuster import BlockBuster

from agentcore.errors import ModelError
from agentcore.llm import LLM, CallContext, Features
from agentcore.llm.formats.responses import encode_function_tools
from agentcore.llm.litellm_route.library import litellm
from agentcore.llm.litellm_route.wires import ResponsesWire, common_options
from agentcore.llm.providers import PROVIDERS
from agentcore.messages import DocumentBlock, ImageBlock, Message, TextBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from media_route import MediaContract
from model_route import ASK, KEY, RouteContract, canned

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    # litellm silences these of its own when it is imported, and pytest undoes that.
    pytest.mark.filterwarnings("ignore:.*Accessing the .* attribute on the instance is deprecated"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """On asyncio, as litellm does."""
    return "asyncio"


@pytest.fixture(autouse=True, scope="module")
def _litellm_looks_for_certificates(_blockbuster: BlockBuster) -> None:
    """Once per client it asks whether the file of SSL_CERT_FILE is there: a stat, on the event loop."""
    _blockbuster.functions["os.stat"].can_block_in(
        "litellm/llms/custom_httpx/http_handler.py", {"get_ssl_verify", "get_ssl_configuration"}
    )


class TestLiteLLM(RouteContract):
    route = "litellm"


class TestLiteLLMMedia(MediaContract):
    route = "litellm"


def test_on_trio_the_error_says_what_to_do() -> None:
    async def ask() -> None:
        with pytest.raises(ModelError, match="trio"):
            await LLM(model="vertex_ai/gemini-2.5-flash", api_key=KEY).complete(ASK)

    anyio.run(ask, backend="trio")


async def test_what_openrouter_says_it_charged_is_what_it_cost() -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}
    used = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "cost": 0.00123}
    said = {"id": "gen-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": used}
    async with canned(json.dumps(said).encode()) as server:
        model = LLM(model="openrouter/some/model", base_url=f"{server.url}/v1", api_key=KEY, route="litellm")
        assert (await model.complete(ASK)).usage.cost == Decimal("0.00123")


async def test_marks_for_the_cache_go_to_those_who_want_them() -> None:
    used = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 5}
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "usage": used}
    said |= {"content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"}
    async with canned(*[json.dumps(said).encode()] * 2) as server:
        model = LLM(model="anthropic/claude-sonnet-4-5", base_url=server.url, api_key=KEY, route="litellm")
        reply = await model.complete([Message.system("Be brief."), *ASK])
        await model.model_copy(update={"prompt_caching": False}).complete(ASK)
        marked, plain = (request.content.decode() for request in server.asked)
    assert marked.count("cache_control") == 2
    assert "cache_control" not in plain
    assert (reply.usage.input_tokens, reply.usage.cache_read_tokens, reply.usage.cache_write_tokens) == (100, 90, 7)
    assert reply.stop_reason == "end"


async def test_pictures_and_documents_arrive_as_gemini_has_them_from_a_person_and_from_a_tool() -> None:
    document = DocumentBlock(data="aGk=", name="plan.pdf")
    shown = ToolResultBlock(call_id="a", name="look", content=(TextBlock(text="Here."), document))
    sent = [
        Message.user("See:", ImageBlock(data="eA==", media_type="image/png"), document),
        Message.assistant(ToolCallBlock(id="a", name="look", arguments={})),
        Message(role="tool", content=(shown,)),
    ]
    content = {"role": "model", "parts": [{"text": "Nice."}]}
    said = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
    said |= {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1, "totalTokenCount": 4}}
    async with canned(json.dumps(said).encode()) as server:
        model = LLM(model="gemini/gemini-2.5-flash", route="litellm", base_url=server.url, api_key=KEY, num_retries=0)
        assert (await model.complete(sent)).message.text == "Nice."
        (request,) = server.asked
    asked, _, answered = request.json()["contents"]
    pdf = {"data": "aGk=", "mime_type": "application/pdf"}
    assert [part.get("inline_data") for part in asked["parts"]] == [
        None,
        {"data": "eA==", "mime_type": "image/png"},
        pdf,
    ]
    (answer,) = answered["parts"]
    assert answer["function_response"]["parts"] == [{"inline_data": pdf}]


async def test_the_providers_are_those_that_litellm_knows() -> None:
    module = await litellm()
    known = {provider.value for provider in module.provider_list}
    assert known - PROVIDERS == set()
    assert PROVIDERS - known == set()


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(Path(__file__).parents[3] / "src"), "PYTHONWARNINGS": "error::ResourceWarning"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.slow  # it imports litellm in a process of its own
def test_importing_is_light_and_the_first_use_reads_no_env_file_and_keeps_quiet(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FROM_ENV_FILE=1\n")
    program = """
import logging, os, sys
import anyio
from agentcore.llm import LLM, CallContext, Features
from agentcore.testing import serve_provider
assert not {"litellm", "openai", "aiohttp", "httpx"} & set(sys.modules)

async def main():
    async with serve_provider(["Hi."]) as provider:
        print((await LLM(model="m", base_url=provider.base_url, route="litellm").complete([])).message.text)

anyio.run(main)
assert "litellm" in sys.modules
assert "FROM_ENV_FILE" not in os.environ
assert "LITELLM_MODE" not in os.environ
logging.getLogger("LiteLLM").warning("nobody asked for this")
"""
    assert run(program, tmp_path) == "Hi.\n"


@pytest.mark.slow
def test_without_litellm_the_extra_to_install_is_named(tmp_path: Path) -> None:
    program = """
import sys
import anyio
from agentcore.errors import MissingExtra
from agentcore.llm import LLM, CallContext, Features
sys.modules["litellm"] = None

async def main():
    try:
        await LLM(model="vertex_ai/gemini-2.5-flash").complete([])
    except MissingExtra as error:
        print(error)

anyio.run(main)
"""
    assert "pip install 'agentcore-runtime[litellm]'" in run(program, tmp_path)


def test_an_empty_key_keeps_litellm_from_looking_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    own = LLM(model="mine", base_url="http://127.0.0.1:1", api_key="")
    assert common_options(own)["api_key"] == "none"
    assert "api_key" not in common_options(LLM(model="openai/gpt-5"))


def test_nothing_is_left_at_the_provider_and_reasoning_comes_encrypted_from_models_that_reason() -> None:
    settings = LLM(model="openai/gpt-5")
    wire, messages = ResponsesWire(), [Message.user("Hi.")]
    tools = [ToolSchema(name="read", description="Reads.", parameters={"type": "object"})]
    context = CallContext(prompt_cache_key="key")
    options = wire.options(settings, messages, tools, context, Features(reasoning=True))
    assert options["store"] is False
    assert options["include"] == ["reasoning.encrypted_content"]
    assert options["prompt_cache_key"] == "key"
    assert options["tools"] == encode_function_tools(tools)
    plain = wire.options(settings, messages, [], None, Features())
    assert not {"include", "reasoning", "prompt_cache_key", "tools", "instructions"} & set(plain)
    thinking = settings.model_copy(update={"reasoning_effort": "low", "max_output_tokens": 9})
    asked = wire.options(thinking, messages, [], None, Features())
    assert asked["reasoning"] == {"effort": "low", "summary": "auto"}
    assert asked["max_output_tokens"] == 9
