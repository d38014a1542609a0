"""One provider over HTTP plays several scripts: the model that a request names says which."""

from __future__ import annotations

import anyio

from agentcore.llm import LLM
from agentcore.messages import Message
from agentcore.testing import ChatProvider, Gate, call, say, serve_provider


def llm(provider: ChatProvider, name: str) -> LLM:
    return LLM(f"openai/{name}", base_url=provider.base_url, api_key="none", num_retries=0)


async def ask(model: LLM) -> str:
    return (await model.complete([Message.user("Hi")])).message.text


async def test_each_model_plays_its_own_script_and_any_other_name_the_first() -> None:
    async with serve_provider(["first", "first again"]) as provider:
        second, third = provider.add_script(["second"]), provider.add_script(["third"], repeat=True)
        assert second != third
        assert await ask(llm(provider, "anything")) == "first"
        assert await ask(llm(provider, third)) == "third"
        assert await ask(llm(provider, second)) == "second"
        assert await ask(llm(provider, third)) == "third"
        assert await ask(llm(provider, "anything")) == "first again"


async def test_a_gate_holds_a_reply_over_http_in_its_middle() -> None:
    gate = Gate()
    async with serve_provider([]) as provider:
        model = llm(provider, provider.add_script([gate.hold(say("one two three"), after=1), call("ping")]))
        with anyio.fail_after(30):
            async with model.stream([Message.user("Hi")]) as stream:
                assert getattr(await anext(stream), "text", None) == "one"
                await gate.arrived()
                gate.open()
                rest = [getattr(delta, "text", None) async for delta in stream]
                assert rest == [" two", " three"]
            assert (await model.complete([Message.user("Hi")])).message.tool_calls[0].name == "ping"
