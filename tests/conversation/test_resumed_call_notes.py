"""The notes of calls that ask, and the secrets in them: masked in the log, and given back to the resumed call."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from agentcore import MemoryStore
from agentcore.testing import call, say
from agentcore.tools import Question
from deploying import DEPLOY, deploying
from talks import error_of, ran, scripted, talk


async def test_secrets_are_masked_in_the_log_and_not_for_the_resumed_call() -> None:
    token = "tok-12345678"
    store = MemoryStore()
    asks = deploying(questions=(Question(text="Which token?"),), note=f"use {token}, not <secret:OTHER>")
    secrets = {"TOKEN": token, "OTHER": "other-secret-1"}
    agent = scripted([DEPLOY, say("done")], asks)
    async with talk(agent, store=store, id="s", secrets=secrets) as conversation:
        await conversation.run("go")
    async with talk(agent, store=store, id="s", secrets=secrets) as conversation:
        (question,) = conversation.state.questions
        assert question.note == {"asked": 1, "own": "use <secret:TOKEN>, not <secret:OTHER>"}
        await conversation.answer(question.id, f"{token} and <secret:OTHER>")
        await conversation.run()
    resumption = ran[1][2]
    assert resumption.note["own"] == f"use {token}, not <secret:OTHER>", "what a server wrote never becomes a value"
    assert resumption.answer == f"{token} and <secret:OTHER>"
    log = "".join(event.model_dump_json() for event in conversation.state.events)
    assert token not in log
    assert "other-secret-1" not in log


async def test_a_call_is_resumed_with_its_arguments_as_they_were_given_though_the_log_cannot_give_them_back() -> None:
    encoded = b64encode(b"tok-12345678").decode()
    script = [call("deploy", version=encoded), say("done")]
    async with talk(script, deploying(), secrets={"TOKEN": "tok-12345678"}) as conversation:
        (action,) = (await conversation.run("go")).pending
        assert action.arguments == {"version": "<secret:TOKEN:encoded>"}
        await conversation.answer(action.id, "staging")
        assert (await conversation.run()).text == "done"
    assert [each[1] for each in ran] == [encoded, encoded]


@pytest.mark.parametrize("encoded", [False, True])
async def test_a_call_whose_note_cannot_be_put_together_again_is_not_resumed_with_another_one(encoded: bool) -> None:
    store, secrets = MemoryStore(), {"TOKEN": "tok-12345678"}
    note = b64encode(b"tok-12345678").decode() if encoded else "tok-12345678"
    agent = scripted([DEPLOY, say("done")], deploying(note=note))
    async with talk(agent, store=store, id="s", secrets=secrets) as conversation:
        await conversation.run("go")
    async with talk(agent, store=store, id="s", secrets=secrets if encoded else None) as conversation:
        await conversation.answer(conversation.state.questions[0].id, "staging")
        await conversation.run()
    error = error_of(conversation)
    assert (error.outcome, error.code) == ("interrupted", "secret_missing")
    assert "TOKEN" in error.error


@pytest.mark.parametrize(
    ("note", "why"), [("x" * 1_000_001, "too large"), (object(), "has to be JSON"), (float("nan"), "has to be JSON")]
)
async def test_a_note_that_cannot_be_kept_is_an_error_for_the_model(note: Any, why: str) -> None:
    async with talk([DEPLOY, say("sorry")], deploying(note=note)) as conversation:
        assert (await conversation.run("go")).text == "sorry"
    assert why in error_of(conversation).error
