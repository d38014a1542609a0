"""Each answer gives its reply: at once, streamed, byte by byte, at once where a stream was asked for; and goes back."""

from __future__ import annotations

import pytest

from agentcore.llm import Reply, deltas_of
from agentcore.messages import Message
from anthropic_exchanges import ANTHROPIC
from chat_exchanges import CHAT
from exchanges import Exchange, serve_exchange
from model_route import ASK, read
from responses_exchanges import RESPONSES
from rounds import some_quick

EXCHANGES = [*CHAT, *RESPONSES, *ANTHROPIC]


def check(reply: Reply, exchange: Exchange) -> None:
    assert reply.message.content == exchange.blocks
    used = reply.usage
    counts = (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
    assert (reply.stop_reason, (*counts, used.reasoning_tokens)) == (exchange.stop, exchange.usage)
    provider, _, _ = exchange.model.partition("/")
    assert (reply.model, reply.provider_id) == (f"{provider}/m-1", "r1")
    assert [(citation.text, citation.url) for citation in reply.message.citations] == exchange.cited
    assert {name: getattr(reply, name) for name in exchange.fields} == exchange.fields
    if exchange.cost is not None:
        assert used.cost == exchange.cost
    assert Reply.model_validate_json(reply.model_dump_json()) == reply


@pytest.mark.parametrize("exchange", some_quick(EXCHANGES, 6), ids=[f"{each.wire}-{each.name}" for each in EXCHANGES])
async def test_an_answer_gives_its_reply_however_it_comes_and_goes_back(exchange: Exchange) -> None:
    async with serve_exchange(exchange) as provider:
        check(await provider.model().complete(ASK), exchange)
        assert provider.asked[0].items() >= exchange.asked.items()
        deltas, reply = await read(provider.model())
        check(reply, exchange)
        if exchange.deltas is not None:
            assert deltas == exchange.deltas
        # As from a log.
        message = Message.model_validate_json(reply.message.model_dump_json())
        await provider.model().complete([*ASK, message, Message.user("And then?")])
        if exchange.sent is not None:
            assert provider.sent == exchange.sent
    async with serve_exchange(exchange, piece=1) as provider:
        again, reply = await read(provider.model())
        check(reply, exchange)
        assert again == deltas
    async with serve_exchange(exchange, streams=False) as provider:
        deltas, reply = await read(provider.model())
        check(reply, exchange)
        assert deltas == list(deltas_of(reply.message))
