from __future__ import annotations

import json
from collections.abc import Sequence

import anyio
import pytest
from pydantic import BaseModel

from agentcore import Agent, Conversation, tool
from agentcore.errors import ModelConnectionError, ModelUnavailable
from agentcore.events import ActionEvent, AgentErrorEvent, ObservationEvent
from agentcore.llm import (
    CallContext,
    Delta,
    ReasoningDelta,
    ResetDelta,
    ResponseSchema,
    RetryingModel,
    RetryPolicy,
    TextDelta,
    ToolCallDelta,
    parse,
)
from agentcore.llm.text_calls import TextToolCalls
from agentcore.messages import ImageBlock, Message, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, ToolSchema
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, calls, say, truncated

ASK = [Message.system("Be brief."), Message.user("Write a.py.")]
WRITE = ToolSchema(
    name="write",
    description="Write a file.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "lines": {"type": "integer", "minimum": 3},
            "mode": {"enum": ["new", "append"], "default": "new"},
        },
        "required": ["path", "lines"],
    },
)
LOOK = ToolSchema(name="look", description="Look around.", parameters={"type": "object", "properties": {}})
CALL = "<function=write>\n<parameter=path>a.py</parameter>\n<parameter=lines>1</parameter>\n</function>"


def scripted(*lines: ScriptLine) -> tuple[ScriptedLLM, TextToolCalls]:
    inside = ScriptedLLM(lines, name="small")
    return inside, TextToolCalls(inside)


async def deltas_of(model: TextToolCalls, messages: Sequence[Message] = ASK) -> tuple[list[Delta], Message]:
    async with model.stream(messages, [WRITE, LOOK]) as stream:
        deltas = [delta async for delta in stream]
        return deltas, stream.reply.message


def words(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


async def test_a_call_in_the_words_becomes_a_call() -> None:
    inside, model = scripted(f"I write it.\n\n{CALL}")
    reply = await model.complete(ASK, [WRITE, LOOK])
    assert reply.message.content == (
        TextBlock(text="I write it."),
        ToolCallBlock(id="call_1_1", name="write", arguments={"path": "a.py", "lines": 1}),
    )
    assert (reply.stop_reason, reply.model, reply.provider_id) == ("tool_calls", "small", "reply_1")
    assert model.name == "small"
    (request,) = inside.requests
    assert request.tools == ()
    assert request.context == CallContext(stop=("</function",))


async def test_several_calls_have_names_of_their_own_also_in_later_turns() -> None:
    _, model = scripted(f"{CALL}\n{CALL}", CALL)
    first = await model.complete(ASK, [WRITE])
    assert [block.id for block in first.message.tool_calls] == ["call_1_1", "call_1_2"]
    results = Message(role="tool", content=(ToolResultBlock(call_id="call_1_1", name="write", content=()),))
    second = await model.complete([*ASK, first.message, results], [WRITE])
    assert [block.id for block in second.message.tool_calls] == ["call_2_1"]


async def test_a_reply_without_calls_is_the_models_own() -> None:
    inside, model = scripted("Done. \n", calls(call("look"), text="Natively."))
    assert await model.complete(ASK, [WRITE]) == (await ScriptedLLM(["Done. \n"], name="small").complete(ASK))
    native = await model.complete(ASK, [WRITE])
    assert native.message.tool_calls[0].name == "look"
    assert len(inside.requests) == 2


async def test_without_tools_words_are_words() -> None:
    inside, model = scripted(CALL, CALL)
    context = CallContext(response_schema=ResponseSchema("answer", {}))
    assert (await model.complete(ASK, context=context)).message.text == CALL
    async with model.stream(ASK) as stream:
        assert words([delta async for delta in stream]) == CALL
    assert inside.requests[0] == Request(tuple(ASK), (), context)


async def test_the_context_goes_on_but_for_a_schema_that_would_leave_no_room_for_calls() -> None:
    inside, _ = scripted("Hi.", "Hi.")
    context = CallContext(conversation_id="c", response_schema=ResponseSchema("answer", {}), stop=("END",))
    await TextToolCalls(inside).complete(ASK, [WRITE], context=context)
    await TextToolCalls(inside, stop=False).complete(ASK, [WRITE], context=context)
    assert [request.context for request in inside.requests] == [
        CallContext(conversation_id="c", stop=("END", "</function")),
        CallContext(conversation_id="c", stop=("END",)),
    ]


async def test_the_model_is_told_of_the_tools_and_how_to_call_them() -> None:
    inside, model = scripted("Hi.", "Hi.")
    await model.complete(ASK, [WRITE, LOOK])
    prompt = inside.requests[0].messages[0].text
    assert prompt.startswith("Be brief.\n\n# Tools")
    assert (
        "## Tool 1: write\nWrite a file.\nParameters:\n"
        "  1. path (string, required): Where.\n"
        "  2. lines (integer, required)\n"
        '  3. mode (any, optional) Allowed values: "new", "append". Default: "new".\n'
    ) in prompt
    assert "## Tool 2: look\nLook around.\nIt has no parameters." in prompt
    assert (
        "<function=write>\n<parameter=path>the path</parameter>\n<parameter=lines>3</parameter>\n</function>" in prompt
    )
    assert "Result of write:" in prompt
    assert inside.requests[0].messages[1:] == (ASK[1],)
    await model.complete(ASK[1:], [LOOK])
    assert [message.role for message in inside.requests[1].messages] == ["system", "user"]
    assert "write" not in inside.requests[1].messages[0].text.split("# Calls")[0]


async def test_parameters_that_are_made_of_others_are_told_with_their_schema() -> None:
    inside, model = scripted("Hi.")
    items = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    parameters = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": items, "description": "Many\nof them."},
            "either": {"anyOf": [items, {"type": "null"}]},
            "free": True,
            "yes": {"type": ["boolean", "null"]},
            "one": {"const": 1},
        },
        "required": ["list", "either", "free", "yes", "one"],
    }
    await model.complete(ASK, [ToolSchema.model_validate({"name": "t", "description": "", "parameters": parameters})])
    prompt = inside.requests[0].messages[0].text
    schema = json.dumps({"type": "array", "items": items})
    assert f"1. list (array, required): Many of them. JSON Schema: {schema}\n" in prompt
    assert "2. either (object or null, required) JSON Schema:" in prompt
    assert "3. free (any, required)\n" in prompt
    assert '<parameter=list>[{"n": 1}]</parameter>\n<parameter=either>{"n": 1}</parameter>\n' in prompt
    assert "<parameter=yes>true</parameter>\n<parameter=one>1</parameter>\n</function>" in prompt


async def test_earlier_calls_and_results_are_told_in_words() -> None:
    inside, model = scripted("Done.")
    image = ImageBlock(data="aGk=", media_type="image/png")
    await model.complete(
        [
            *ASK,
            Message.assistant(
                ThinkingBlock(text="Hm."),
                "I write.",
                ToolCallBlock(id="1", name="write", arguments={"path": "1", "lines": 2}),
                ToolCallBlock(id="2", name="look", arguments="<function=look>\nls"),
                ToolCallBlock(id="3", name="look", arguments="{"),
            ),
            Message(
                role="tool",
                content=(
                    ToolResultBlock(call_id="1", name="write", content=(TextBlock(text="Written."), image)),
                    ToolResultBlock(call_id="2", name="look", content=(TextBlock(text="No."),), is_error=True),
                ),
            ),
            Message(role="tool", content=(ToolResultBlock(call_id="3", name="look", content=()),)),
            Message.user("Go on."),
            Message.assistant("Yes."),
            Message.user("Do."),
            Message(role="tool", content=(ToolResultBlock(call_id="3", name="look", content=()),)),
        ],
        [WRITE, LOOK],
    )
    (request,) = inside.requests
    assert request.messages[2:] == (
        Message.assistant(
            ThinkingBlock(text="Hm."),
            "I write.\n\n<function=write>\n<parameter=path>1</parameter>\n<parameter=lines>2</parameter>\n</function>\n\n"
            "<function=look>\nls\n</function>\n\n<function=look>\n{\n</function>",
        ),
        Message.user(
            "Result of write:\nWritten.", image, "Error of look:\nNo.\n\nResult of look:\n(nothing)\n\nGo on."
        ),
        Message.assistant("Yes."),
        Message.user("Do."),
        Message.user("Result of look:\n(nothing)"),
    )


async def test_what_was_written_is_kept_as_long_as_the_messages_live() -> None:
    inside, model = scripted("Hi.", "Hi.", "Hi.", "Hi.")
    history = [
        *ASK,
        Message.assistant(ToolCallBlock(id="1", name="write", arguments={"path": "1", "lines": 2})),
        Message(role="tool", content=(ToolResultBlock(call_id="1", name="write", content=()),)),
        Message.assistant(ToolCallBlock(id="2", name="gone", arguments={})),
        Message(role="tool", content=(ToolResultBlock(call_id="2", name="gone", content=()),)),
    ]
    await model.complete(history, [WRITE])
    await model.complete([*history, Message.user("Go on.")], [WRITE])
    first, second = (request.messages for request in inside.requests)
    assert all(one is other for one, other in zip(first[:-1], second, strict=False))
    assert second[-1].text == "Result of gone:\n(nothing)\n\nGo on."
    # Another schema of the same name: what was written by the old one is not what is said now.
    text = WRITE.model_copy(update={"parameters": {"properties": {"path": {"type": "integer"}}}})
    await model.complete(history, [text])
    assert '<parameter=path>"1"</parameter>' in inside.requests[2].messages[2].text
    await model.complete(ASK[1:], [WRITE])
    assert [message.role for message in inside.requests[3].messages] == ["system", "user"]


async def test_words_stream_and_a_call_comes_whole() -> None:
    _, model = scripted(f"I write it.\n\n{CALL}\nNow wait.")
    deltas, message = await deltas_of(model)
    assert deltas[:3] == [TextDelta(text="I"), TextDelta(text=" write"), TextDelta(text=" it.")]
    assert deltas[3:5] == [
        ToolCallDelta(index=0, id="call_1_1", name="write"),
        ToolCallDelta(index=0, arguments='{"path": "a.py", "lines": 1}'),
    ]
    assert words(deltas[5:]) == "Now wait."
    assert [block.type for block in message.content] == ["text", "tool_call", "text"]


async def test_a_call_that_cannot_be_read_streams_and_ends_as_its_text() -> None:
    text = "<function=write>\n<parameter=path>half a pa"
    _, model = scripted(say(text, stop_reason="length"))
    deltas, message = await deltas_of(model)
    assert deltas[-1] == ToolCallDelta(index=0, arguments=text)
    assert message.tool_calls[0].arguments == text


async def test_thinking_that_ends_without_having_begun_is_voided_and_said_as_thinking() -> None:
    _, model = scripted(say(f"I should write.\n</think>\n\n{CALL}", thinking="Hm. "))
    deltas, message = await deltas_of(model)
    reset = next(place for place, delta in enumerate(deltas) if isinstance(delta, ResetDelta))
    assert words(deltas[:reset]) == "I should write."
    assert deltas[reset + 1] == ReasoningDelta(text="Hm. I should write.")
    assert words(deltas[reset:]) == ""
    assert message.content[:2] == (ThinkingBlock(text="Hm. "), ThinkingBlock(text="I should write."))
    assert len(message.tool_calls) == 1


async def test_what_a_model_calls_natively_is_numbered_with_the_rest() -> None:
    _, model = scripted(calls(call("look"), call("look"), text=CALL))
    deltas, message = await deltas_of(model)
    assert [(delta.index, delta.name) for delta in deltas if isinstance(delta, ToolCallDelta) and delta.name] == [
        (0, "write"),
        (1, "look"),
        (2, "look"),
    ]
    assert [block.name for block in message.tool_calls] == ["write", "look", "look"]


@pytest.mark.parametrize("after", range(8))
async def test_a_stream_that_breaks_raises_wherever_it_does(after: int) -> None:
    _, model = scripted(truncated(f"I write. {CALL}", after=after))
    with pytest.raises(ModelConnectionError):
        await deltas_of(model)


async def test_a_reply_that_starts_over_is_read_from_its_beginning() -> None:
    attempts = [truncated(f"Now. {CALL}", after=after) for after in (1, 3)]
    inside = ScriptedLLM([*attempts, ModelUnavailable("down"), f"I write. {CALL}"])
    model = TextToolCalls(RetryingModel(inside, RetryPolicy(retries=5, min_wait=0, max_wait=0)))
    deltas, message = await deltas_of(model)
    resets = [place for place, delta in enumerate(deltas) if isinstance(delta, ResetDelta)]
    assert len(resets) == 2
    said = deltas[resets[-1] + 1 :]
    assert words(said) == "I write."
    assert [delta.index for delta in said if isinstance(delta, ToolCallDelta)] == [0, 0]
    assert len(message.tool_calls) == 1


class Place(BaseModel):
    name: str
    people: int


async def test_an_answer_of_a_type_can_be_had_from_it() -> None:
    inside, model = scripted(
        "<function=answer>\n<parameter=name>Oslo</parameter>\n</function>",
        "<function=answer>\n<parameter=name>Oslo</parameter>\n<parameter=people>709000</parameter>\n</function>",
    )
    assert await parse(model, ASK, Place) == Place(name="Oslo", people=709_000)
    assert inside.requests[1].last.text.startswith("Error of answer:\nThe answer does not fit:\n- people: ")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await anyio.lowlevel.checkpoint()
    return a + b


async def test_an_agent_works_with_a_model_that_calls_in_words() -> None:
    inside = ScriptedLLM(
        [
            "I add.\n\n<function=add>\n<parameter=a>2</parameter>\n<parameter=b>40</parameter>\n",
            "<function=add>\n<parameter=a>2</parameter>\n<parameter=b>4",
            "<function=add>\n<parameter=a>2</parameter>\n</function>",
            "<function=multiply>\n<parameter=a>2</parameter>\n</function>",
            lambda request: f"It is done. {request.last.text}",
        ]
    )
    async with Conversation(Agent(llm=TextToolCalls(inside), tools=[add])) as conversation:
        result = await conversation.run("What is 2 + 40?")
        events = conversation.state.events
    assert [event.text for event in events if isinstance(event, ObservationEvent)] == ["42"]
    errors = [event.error for event in events if isinstance(event, AgentErrorEvent)]
    assert [event.malformed is not None for event in events if isinstance(event, ActionEvent)] == [
        False,
        True,
        False,
        False,
    ]
    assert "can't be read" in errors[0]
    assert "`b` is missing" in errors[1]
    assert "no tool 'multiply'" in errors[2]
    assert result.text is not None
    assert result.text.startswith("It is done. Error of multiply:")
    asked = [request.last.text for request in inside.requests]
    assert asked[1] == "Result of add:\n42"
    assert all(request.tools == () for request in inside.requests)


async def test_thinking_in_tags_streams_as_thinking() -> None:
    _, model = scripted(f"<think>I should\nwrite.</think>\n{CALL}")
    deltas, message = await deltas_of(model)
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "I should\nwrite."
    assert words(deltas) == ""
    assert message.content[0] == ThinkingBlock(text="I should\nwrite.")
