"""Calls of Gemini through litellm, which has an interface of its own."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.to_thread
import pytest
from blockbuster import BlockBuster

from agentcore.errors import BadRequest, ModelError
from agentcore.llm import LLM
from agentcore.messages import TextBlock, ToolCallBlock
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from model_route import ASK, KEY, read
from rounds import some_quick

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    # litellm silences these of its own when it is imported, and pytest undoes that.
    pytest.mark.filterwarnings("ignore:.*Accessing the .* attribute on the instance is deprecated"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),
]

CALL: dict[str, Any] = {"functionCall": {"name": "look", "args": {"at": "x"}}, "thoughtSignature": "c2lnbmVk"}
USED = {"promptTokenCount": 15, "candidatesTokenCount": 8, "thoughtsTokenCount": 5, "cachedContentTokenCount": 4}


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


def said(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0} | more
    return {"candidates": [candidate], "modelVersion": "gemini-2.5-flash", "responseId": "r", "usageMetadata": USED}


async def answer(request: HTTPRequest, responder: Responder) -> None:
    if "streamGenerateContent" not in request.path:
        await responder.send_json(200, said({"text": "Looking."}, CALL, finishReason="STOP"))
        return
    events = [said({"text": "Look"}), said({"text": "ing."}), said(CALL, finishReason="STOP")]
    body = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)
    await responder.send(200, body.encode(), {"Content-Type": "text/event-stream"})


def model_at(url: str) -> LLM:
    return LLM(model="gemini/gemini-2.5-flash", base_url=f"{url}/v1beta", api_key=KEY, num_retries=0, route="litellm")


async def test_words_calls_signatures_and_counts_arrive_streamed_and_not() -> None:
    with anyio.fail_after(60):
        async with serve_http(answer) as server:
            whole = await model_at(server.url).complete(ASK)
            _, streamed = await read(model_at(server.url))
    for reply in (whole, streamed):
        text, call = reply.message.content[:2]
        assert text == TextBlock(text="Looking.")
        assert isinstance(call, ToolCallBlock)
        assert (call.name, call.arguments) == ("look", {"at": "x"})
        assert "c2lnbmVk" in reply.message.model_dump_json()
        used = reply.usage
        assert (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.reasoning_tokens) == (15, 13, 4, 5)
        assert (reply.stop_reason, reply.model) == ("tool_calls", "gemini/gemini-2.5-flash")


BEGUN = f"data: {json.dumps(said({'text': 'The answer '}))}\r\n\r\n"


@pytest.mark.parametrize(
    "body", some_quick([2 * BEGUN, f'{BEGUN}data: {{"candi', BEGUN + "<html>Bad gateway</html>", ""], 4)
)
async def test_a_stream_that_breaks_off_is_an_error_and_never_a_short_reply(body: str) -> None:
    async def cut(request: HTTPRequest, responder: Responder) -> None:
        del request
        await responder.send(200, body.encode(), {"Content-Type": "text/event-stream"})

    with anyio.fail_after(60):
        async with serve_http(cut) as server:
            with pytest.raises(ModelError) as raised:
                await read(model_at(server.url))
    assert raised.value.retryable


async def test_an_error_is_told_without_what_litellm_makes_of_its_bytes() -> None:
    async def refuse(request: HTTPRequest, responder: Responder) -> None:
        del request
        await responder.send_json(
            404, {"error": {"code": 404, "message": "models/x is not found", "status": "NOT_FOUND"}}
        )

    with anyio.fail_after(60):
        async with serve_http(refuse) as server:
            with pytest.raises(BadRequest, match=r"\(models/x is not found\)"):
                await read(model_at(server.url))


async def test_what_it_opened_is_closed_with_each_event_loop() -> None:
    async def ask() -> None:
        await read(model_at(server.url))
        assert server.connections >= 1

    with anyio.fail_after(60):
        async with serve_http(answer) as server:
            for _ in range(2):
                await anyio.to_thread.run_sync(anyio.run, ask)
                await server.idle()


@pytest.mark.slow  # hundreds of answers
async def test_no_cut_is_taken_for_a_whole_reply() -> None:
    events = [said({"text": "Look"}), said({"text": "ing."}), said(CALL, finishReason="STOP")]
    whole = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode()
    end = 0

    async def cut(request: HTTPRequest, responder: Responder) -> None:
        del request
        await responder.send(200, whole[:end], {"Content-Type": "text/event-stream"})

    short: list[int] = []
    with anyio.fail_after(300):
        async with serve_http(cut) as server:
            for end in range(0, len(whole) - 4, 3):
                try:
                    _, reply = await read(model_at(server.url))
                except ModelError:
                    continue
                if reply.message.text != "Looking." or not reply.message.tool_calls:
                    short.append(end)
    assert short == []
