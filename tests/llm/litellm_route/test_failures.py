from __future__ import annotations

from typing import Any

import anyio
import pytest

from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContentPolicy,
    ContextWindowExceeded,
    MalformedHistory,
    ModelConnectionError,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from agentcore.llm import LLM
from agentcore.llm.litellm_route.route import as_model_error
from model_route import ASK

CLAUDE = LLM(model="anthropic/claude-sonnet-4-5")


class Refused(Exception):
    """An error as clients of providers raise them."""

    def __init__(
        self, words: str, status: int | None = None, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(words)
        self.status_code = status
        self.litellm_response_headers = headers
        vars(self).update(more)


class ConnectError(Exception):
    pass


class ReadTimeout(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Refused("no", 401), AuthenticationError),
        (Refused("no", 403), AuthenticationError),
        (
            Refused("Missing Anthropic API Key - A call is being made to anthropic but no key is set", 500),
            AuthenticationError,
        ),
        (Refused("slow down", 429), RateLimited),
        (Refused("This model's maximum context length is 8192 tokens", 400), ContextWindowExceeded),
        (Refused("prompt is too long: 210000 tokens > 200000 maximum", 400), ContextWindowExceeded),
        (Refused("too big", 400, code="context_length_exceeded"), ContextWindowExceeded),
        (Refused('GroqException - {"error": {"message": "no", "code": "tool_use_failed"}}', 400), ModelUnavailable),
        (Refused("messages.1: `tool_use` ids were found without `tool_result` blocks", 400), MalformedHistory),
        (Refused("An assistant message with 'tool_calls' must be followed by tool messages", 400), MalformedHistory),
        (Refused("roles must alternate", 400), MalformedHistory),
        (Refused("flagged", 400, code="content_policy_violation"), ContentPolicy),
        (Refused("The response was filtered due to Azure's content management policy", 400), ContentPolicy),
        (Refused("no such model", 404), BadRequest),
        (Refused("temperature must be less than 2", 400), BadRequest),
        (Refused("gone", 408), ModelTimeout),
        (Refused("gone", 504), ModelTimeout),
        (ReadTimeout("gone"), ModelTimeout),
        (Refused("boom", 500), ModelUnavailable),
        (Refused("overloaded", 529), ModelUnavailable),
        (Refused("who knows"), ModelUnavailable),
        (ImportError("Missing boto3"), BadRequest),
    ],
)
def test_what_a_provider_says_becomes_one_of_ours(error: Exception, kind: type[ModelError]) -> None:
    failure = as_model_error(error, CLAUDE)
    assert type(failure) is kind
    assert str(failure).startswith("anthropic/claude-sonnet-4-5: ")
    assert failure.model == "anthropic/claude-sonnet-4-5"
    assert failure.status == getattr(error, "status_code", None)


def test_a_broken_connection_is_told_wherever_it_is_wrapped() -> None:
    wrapped = Refused("litellm.InternalServerError: Connection error.", 500)
    wrapped.__cause__ = ConnectError("[Errno 111] Connection refused")
    failure = as_model_error(wrapped, LLM(model="llama3", base_url="http://localhost:11434/v1"))
    assert type(failure) is ModelConnectionError
    assert failure.status is None
    assert "http://localhost:11434/v1" in str(failure)
    assert "Connection refused" in str(failure)
    assert "anthropic" in str(as_model_error(ConnectionResetError("reset"), CLAUDE))


def test_without_a_key_the_variable_to_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    words = str(as_model_error(Refused("no", 401), CLAUDE))
    assert "Set ANTHROPIC_API_KEY, or pass LLM(api_key=...)" in words
    monkeypatch.setenv("ANTHROPIC_API_KEY", "wrong")
    assert "the key in ANTHROPIC_API_KEY" in str(as_model_error(Refused("no", 401), CLAUDE))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "only one of the two")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    words = str(as_model_error(Refused("Unable to locate credentials", 401), LLM(model="bedrock/some-model")))
    assert "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or pass" in words
    other = LLM(model="nebius/some-model")
    assert "Set NEBIUS_API_KEY" in str(as_model_error(Refused("no", 401), other))


def test_an_error_of_ours_is_given_back() -> None:
    error = ModelTimeout("late")
    assert as_model_error(error, CLAUDE) is error


def test_a_key_that_a_provider_repeats_is_not_passed_on() -> None:
    llm = CLAUDE.model_copy(update={"api_key": "sk-very-secret"})
    failure = as_model_error(Refused("invalid key sk-very-secret", 401), llm)
    assert "sk-very-secret" not in str(failure)
    assert "LLM(api_key=...)" in str(failure)


def test_what_litellm_says_around_it_is_left_out() -> None:
    said = "litellm.RateLimitError: litellm.APIError: RateLimitError: OpenAIException - slow down"
    assert str(as_model_error(Refused(said, 429), CLAUDE)).endswith("(slow down)")
    body = 'litellm.BadRequestError: AnthropicException - {"error": {"message": "bad effort", "type": "x"}}'
    assert "(bad effort)" in str(as_model_error(Refused(body, 400), CLAUDE))
    inside = Refused("litellm.MidStreamFallbackError: x", 503, original_exception=Refused("overloaded", 529))
    assert as_model_error(inside, CLAUDE).status == 529
    traced = as_model_error(Refused("boom\nTraceback (most recent call last):\n  File ...", 500), CLAUDE)
    assert str(traced).endswith("(boom)")
    assert len(str(as_model_error(Refused("x" * 100_000, 500), CLAUDE))) < 3_000


def test_the_time_that_a_provider_names_is_read() -> None:
    assert as_model_error(Refused("slow down", 429, {"retry-after": "0.5"}), CLAUDE).retry_after == 0.5
    assert as_model_error(Refused("slow down", 429, {}), CLAUDE).retry_after is None


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "words"), [("opnai", "Did you mean 'openai'?"), ("our-own", "LLM(base_url=...)")])
def test_a_provider_that_there_is_not_is_named_and_the_one_that_may_be_meant(provider: str, words: str) -> None:
    model = LLM(model=f"{provider}/gpt-5", api_key="sk-some-key", num_retries=0)
    with pytest.raises(BadRequest) as raised:
        anyio.run(model.complete, ASK)  # on asyncio, as litellm is
    assert f"there is no provider {provider!r}" in str(raised.value)
    assert words in str(raised.value)
