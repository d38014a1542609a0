from __future__ import annotations

from datetime import date
from enum import Enum

import anyio
import pytest
from pydantic import BaseModel, ConfigDict, Field

from agentcore.errors import ModelError, RateLimited, SchemaError, StructuredOutputError
from agentcore.llm import CallContext, Parsed, parse, parse_reply
from agentcore.messages import Message, TextBlock, ToolCallBlock
from agentcore.testing import ScriptedLLM, ScriptedReply, call, calls, say
from agentcore.usage import Usage

ASK = [Message.system("Be exact."), Message.user("Which city?")]


class City(BaseModel):
    """A city of this world."""

    name: str = Field(description="As its people write it.")
    people: int


class Colour(Enum):
    RED = "red"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    founded: date
    twins: tuple[str, ...]
    colour: Colour


OSLO = City(name="Oslo", people=700_000)


async def test_the_model_is_given_a_tool_of_the_types_schema_and_told_to_call_it() -> None:
    model = ScriptedLLM([call("answer", name="Oslo", people=700_000)])
    context = CallContext(conversation_id="c")
    assert await parse(model, ASK, City, context=context) == OSLO
    (request,) = model.requests
    (tool,) = request.tools
    assert tool.description == "A city of this world."
    assert tool.parameters["required"] == ["name", "people"]
    assert "As its people write it." in str(tool.parameters)
    assert request.messages[0] == ASK[0]
    assert len(request.messages) == 2
    assert "'answer'" in request.last.text
    assert request.context == context
    assert len(ASK[-1].content) == 1
    after = ScriptedLLM([call("answer", name="Oslo", people=700_000)])
    await parse(after, [*ASK, Message.assistant("Oslo.")], City)
    assert [message.role for message in after.requests[0].messages] == ["system", "user", "assistant", "user"]


async def test_types_that_json_has_no_word_for_are_read_also_by_strict_models() -> None:
    model = ScriptedLLM([call("answer", founded="1048-01-01", twins=["Gothenburg"], colour="red")])
    value = await parse(model, ASK, Strict)
    assert value == Strict(founded=date(1048, 1, 1), twins=("Gothenburg",), colour=Colour.RED)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Oslo", "people": 700000}',
        '\n```json\n{"name": "Oslo", "people": 700000}\n```\n',
        'Here it is:\n\n```json\n{"name": "Oslo", "people": 700000}\n```\n\nAnything else?',
    ],
)
async def test_an_answer_in_words_that_are_json_is_one(text: str) -> None:
    assert await parse(ScriptedLLM([text]), ASK, City) == OSLO


async def test_what_does_not_fit_is_told_once_and_corrected() -> None:
    used = Usage(input_tokens=10, output_tokens=1)
    model = ScriptedLLM(
        [
            calls(call("answer", name="Oslo", people="many"), usage=used),
            calls(call("answer", name="Oslo", people=700_000), usage=used),
        ]
    )
    parsed = await parse_reply(model, ASK, City)
    assert parsed == Parsed(OSLO, Usage(requests=2, input_tokens=20, output_tokens=2), parsed.reply)
    assert parsed.reply.provider_id == "reply_2"
    second = model.requests[1]
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "tool"]
    (answer,) = second.answers
    assert "people: Input should be a valid integer" in answer
    assert second.tools == model.requests[0].tools


async def test_every_call_of_a_reply_that_does_not_fit_is_answered() -> None:
    model = ScriptedLLM([calls(call("other"), call("answer")), call("answer", name="Oslo", people=700_000)])
    await parse(model, ASK, City)
    assert len(model.requests[1].answers) == 2


@pytest.mark.parametrize(
    "said", [say("It is Oslo."), say(""), calls(ToolCallBlock(id="1", name="answer", arguments="{"))]
)
async def test_words_and_silence_and_half_a_call_are_corrected_too(said: ScriptedReply) -> None:
    model = ScriptedLLM([said, call("answer", name="Oslo", people=700_000)])
    assert await parse(model, ASK, City) == OSLO
    assert all(message.content for message in model.requests[1].messages)


async def test_a_reply_that_was_cut_off_is_told_so() -> None:
    model = ScriptedLLM([say('{"name": "Os', stop_reason="length"), call("answer", name="Oslo", people=700_000)])
    await parse(model, ASK, City)
    assert "be shorter" in model.requests[1].last.text


async def test_an_answer_that_still_does_not_fit_is_an_error_with_what_was_written() -> None:
    model = ScriptedLLM([call("answer", name="Oslo"), calls(call("answer", people=[1]), text="Sorry.")], name="small")
    with pytest.raises(StructuredOutputError) as raised:
        await parse(model, ASK, City)
    error = raised.value
    assert isinstance(error, ModelError)
    assert error.text == 'Sorry.\n{"people": [1]}'
    assert error.usage.requests == 2
    assert error.model == "small"
    assert "'City'" in str(error)
    assert "- name: Field required" in str(error)
    assert len(model.requests) == 2


async def test_many_problems_are_told_in_part() -> None:
    class Many(BaseModel):
        numbers: list[int]

    model = ScriptedLLM([call("answer", numbers=[*"x" * 50]), call("answer", numbers=[1])])
    await parse(model, ASK, Many)
    assert "- and 30 more" in model.requests[1].answers[0]


async def test_a_model_can_be_held_to_the_schema_by_its_provider() -> None:
    model = ScriptedLLM(["Oslo!", '{"name": "Oslo", "people": 700000}'])
    assert await parse(model, ASK, City, how="response_schema", context=CallContext(conversation_id="c")) == OSLO
    for request in model.requests:
        assert request.tools == ()
        assert request.context is not None
        assert request.context.conversation_id == "c"
        assert request.context.response_schema is not None
        assert request.context.response_schema.name == "answer"
        assert "people" in str(request.context.response_schema.schema)
    assert model.requests[0].messages == tuple(ASK)
    assert TextBlock(text="Oslo!") in model.requests[1].messages[2].content


async def test_errors_of_the_model_come_out_as_they_are() -> None:
    with pytest.raises(RateLimited):
        await parse(ScriptedLLM([RateLimited("slow down")]), ASK, City)

    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        thing: anyio.CancelScope

    with pytest.raises(SchemaError):
        await parse(ScriptedLLM([]), ASK, Odd)
