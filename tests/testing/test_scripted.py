from __future__ import annotations

from decimal import Decimal

import anyio
import pytest

from agentcore import Agent, Conversation
from agentcore.context import Messages
from agentcore.errors import ModelConnectionError, RateLimited, ScriptExhausted
from agentcore.llm import CallContext, Delta, Model, ReasoningDelta, Reply, TextDelta, ToolCallDelta
from agentcore.messages import Message, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from agentcore.testing import Gate, Request, ScriptedLLM, ScriptedReply, call, calls, hang, say, truncated
from agentcore.usage import Usage

ASK = [Message.user("Hello?")]


async def read(model: Model, deltas: list[Delta] | None = None) -> Reply:
    async with model.stream(ASK) as stream:
        async for delta in stream:
            if deltas is not None:
                deltas.append(delta)
        return stream.reply


async def test_lines_are_played_in_order_whichever_way_they_are_asked_for() -> None:
    model = ScriptedLLM(["one", say("two"), Message.assistant("three"), lambda request: request.last.text])
    texts = [(await model.complete(ASK)).message.text, (await read(model)).message.text]
    texts += [(await read(model)).message.text, (await model.complete(ASK)).message.text]
    assert texts == ["one", "two", "three", "Hello?"]


async def test_usage_is_what_the_script_says_it_is_or_nothing_and_that_is_known() -> None:
    usage = (await ScriptedLLM(["one"]).complete(ASK)).usage
    assert (usage.requests, usage.cost, usage.unpriced_requests) == (1, Decimal(0), 0)
    model = ScriptedLLM([say("one", usage=Usage(input_tokens=7, known_cost=Decimal("0.5")))])
    usage = (await model.complete(ASK)).usage
    assert (usage.requests, usage.input_tokens, usage.cost) == (1, 7, Decimal("0.5"))


async def test_calls_get_ids_of_their_own_and_stop_the_reply_for_tools() -> None:
    model = ScriptedLLM(
        [calls(call("read", path="a"), call("read", path="b"), text="Looking."), call("read", path="c")]
    )
    first, second = await model.complete(ASK), await model.complete(ASK)
    assert first.stop_reason == second.stop_reason == "tool_calls"
    assert first.message.text == "Looking."
    made = [*first.message.tool_calls, *second.message.tool_calls]
    assert [made_call.arguments for made_call in made] == [{"path": "a"}, {"path": "b"}, {"path": "c"}]
    assert len({made_call.id for made_call in made}) == 3


async def test_a_call_block_says_its_own_id_and_arguments_that_are_no_json() -> None:
    reply = await ScriptedLLM([calls(ToolCallBlock(id="mine", name="read", arguments='{"path": '))]).complete(ASK)
    assert reply.message.tool_calls == (ToolCallBlock(id="mine", name="read", arguments='{"path": '),)


async def test_the_deltas_of_a_reply_add_up_to_it() -> None:
    model = ScriptedLLM([calls(call("read", path="a b"), call("stop"), text="Let me see.", thinking="a file, then")])
    deltas: list[Delta] = []
    reply = await read(model, deltas)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "Let me see."
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "a file, then"
    assert len([delta for delta in deltas if isinstance(delta, TextDelta)]) == 3
    of_first = [delta for delta in deltas if isinstance(delta, ToolCallDelta) and delta.index == 0]
    assert [delta.name for delta in of_first if delta.name] == ["read"]
    assert "".join(delta.arguments for delta in of_first) == '{"path": "a b"}'
    assert [type(block) for block in reply.message.content] == [ThinkingBlock, TextBlock, ToolCallBlock, ToolCallBlock]


async def test_a_line_may_be_a_function_async_or_not_that_gives_another_line() -> None:
    async def later(request: Request) -> ScriptedReply:
        await anyio.lowlevel.checkpoint()
        return call("count", messages=len(request.messages), tools=[tool.name for tool in request.tools])

    tools = (ToolSchema(name="count", description="Counts.", parameters={"type": "object"}),)
    reply = await ScriptedLLM([lambda _request: later]).complete(ASK, tools)
    assert reply.message.tool_calls[0].arguments == {"messages": 1, "tools": ["count"]}


def test_a_request_tells_what_the_tools_answered_to_the_last_calls() -> None:
    def answer(text: str) -> Message:
        return Message(role="tool", content=(ToolResultBlock(call_id=text, name="t", content=(TextBlock(text=text),)),))

    messages = (answer("earlier"), Message.assistant("Again."), answer("one"), answer("two"))
    assert Request(messages).answers == ("one", "two")
    assert Request((*messages, Message.user("So?"))).answers == ()


async def test_one_function_in_place_of_a_script_answers_every_request() -> None:
    model = ScriptedLLM(lambda request: f"{len(request.messages)} messages")
    assert [(await model.complete(ASK * n)).message.text for n in (1, 2)] == ["1 messages", "2 messages"]


@pytest.mark.parametrize("error", [RateLimited("slow down", retry_after=3), ZeroDivisionError("a bug")])
async def test_an_error_is_raised_as_itself(error: Exception) -> None:
    model = ScriptedLLM([error, error])
    with pytest.raises(type(error)) as raised:
        await model.complete(ASK)
    assert raised.value is error
    with pytest.raises(type(error)):
        await read(model)


async def test_an_empty_script_says_how_many_lines_it_had_and_a_repeated_one_never_ends() -> None:
    repeated = ScriptedLLM(["one", "two"], repeat=True)
    assert [(await repeated.complete(ASK)).message.text for _ in range(5)] == ["one", "two", "one", "two", "one"]
    model = ScriptedLLM(["one"])
    await model.complete(ASK)
    with pytest.raises(ScriptExhausted, match="has 1 reply and"):
        await model.complete(ASK)


async def test_requests_are_recorded_as_they_were_or_not_at_all() -> None:
    messages = list(ASK)
    context = CallContext(conversation_id="c")
    model = ScriptedLLM(["one", "two"])
    await model.complete(messages, context=context)
    messages.append(Message.user("More."))
    await model.complete(messages)
    assert [len(request.messages) for request in model.requests] == [1, 2]
    assert [request.context for request in model.requests] == [context, None]
    silent = ScriptedLLM([lambda request: request.last.text], record=False)
    assert (await silent.complete(ASK)).message.text == "Hello?"
    assert silent.requests == []


async def test_a_cut_reply_breaks_off_after_so_many_deltas() -> None:
    model = ScriptedLLM([truncated("one two three", after=2), truncated("one", error=ZeroDivisionError("a bug"))])
    deltas: list[Delta] = []
    with pytest.raises(ModelConnectionError, match="before the reply was complete"):
        await read(model, deltas)
    assert deltas == [TextDelta(text="one"), TextDelta(text=" two")]
    with pytest.raises(ZeroDivisionError):
        await model.complete(ASK)
    with pytest.raises(ModelConnectionError):
        await read(ScriptedLLM([truncated("short", after=100)]))


async def test_the_reply_is_not_there_before_the_stream_ended() -> None:
    async with ScriptedLLM(["one two"]).stream(ASK) as deltas:
        await anext(deltas)
        with pytest.raises(RuntimeError, match="has not ended yet"):
            _ = deltas.reply


async def test_a_gate_holds_replies_before_and_in_the_middle() -> None:
    gate = Gate()
    model = ScriptedLLM([gate.hold("one"), gate.hold(say("two three"), after=1)])
    deltas: list[Delta] = []
    replies: list[Reply] = []

    async def ask() -> None:
        replies.append(await model.complete(ASK))

    async def follow() -> None:
        replies.append(await read(model, deltas))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await gate.arrived()
            tasks.start_soon(follow)
            await gate.arrived(2)
            assert replies == []
            assert deltas == [TextDelta(text="two")]
            gate.open()
    assert sorted(reply.message.text for reply in replies) == ["one", "two three"]


async def test_a_cancelled_call_leaves_the_gate() -> None:
    gate = Gate()
    model = ScriptedLLM([gate.hold("one")])
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(model.complete, ASK)
            await gate.arrived()
            tasks.cancel_scope.cancel()
        await gate.left()


async def test_a_hanging_model_ends_by_cancellation() -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ScriptedLLM([hang]).complete, ASK)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()


def test_only_what_is_written_out_can_be_held_in_its_middle() -> None:
    with pytest.raises(TypeError, match="held in their middle"):
        Gate().hold(hang, after=1)


async def test_the_requests_of_a_conversation_share_its_messages_and_one_context() -> None:
    model = ScriptedLLM([say(str(number)) for number in range(5)])
    async with Conversation(Agent(llm=model)) as conversation:
        for number in range(5):
            await conversation.run(f"question {number}")
    assert [len(request.messages) for request in model.requests] == [2, 4, 6, 8, 10]
    assert [request.last.text for request in model.requests] == [f"question {number}" for number in range(5)]
    # Snapshots of one list: keeping a request costs the same at step 4,000 as at the first.
    assert {type(request.messages) for request in model.requests} == {Messages}
    contexts = {id(request.context) for request in model.requests}
    assert len(contexts) == 2  # the first says that it is the first
    assert all(request.context is not None and request.context.on_retry is None for request in model.requests)
