from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import (
    AuthenticationError,
    BadRequest,
    ContentPolicy,
    ContextWindowExceeded,
    ModelError,
    ModelUnavailable,
    RateLimited,
)
from agentcore.llm import LLM
from agentcore.llm.error_bodies import delay_in_body, extract_message, seconds_to_wait
from agentcore.llm.failures import ProviderError, model_error, refused_in_stream
from agentcore.messages import Message

GROQ = LLM(model="groq/m")


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"message": "no", "type": "invalid_request_error", "status_code": 400}, BadRequest, 400),
        ({"message": "no", "code": 429}, RateLimited, 429),
        ({"message": "no", "code": "503"}, ModelUnavailable, 503),
        ({"message": "no", "code": "rate_limit_exceeded"}, RateLimited, 429),
        ({"message": "no", "code": "never heard of"}, ModelUnavailable, 500),
        ("no", ModelUnavailable, 500),
    ],
)
def test_an_error_in_a_stream_is_told_by_its_status_wherever_that_is(
    error: Any, kind: type[ModelError], status: int
) -> None:
    refused = refused_in_stream(GROQ, error)
    assert type(refused) is kind
    assert refused.status == status
    assert "(no)" in str(refused)


def test_a_call_that_the_provider_does_not_pass_on_may_be_made_better_when_asked_again() -> None:
    said = "Tool call validation failed: attempted to call tool 'x' which was not in request.tools"
    error: dict[str, Any] = {
        "message": said,
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "status_code": 400,
    }
    whole = model_error(ProviderError(status=400, message=said, codes="tool_use_failed invalid_request_error"), GROQ)
    for refused in (whole, refused_in_stream(GROQ, error)):
        assert isinstance(refused, ModelUnavailable)
        assert refused.retryable
        assert said in str(refused)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("1000000000", 10**9),
        ("-5", 0),
        ("nan", 0),
        ("1e400", math.inf),
        ("Fri, 31 Dec 9999 23:59:59 -1200", None),
        ("Thu, 01 Jan 1970 00:00:00 +99999999999999999999", None),
        ("Mon, 01 Jan 0001 00:00:00", 0),
        ("Fri, 99 Foo 2020", None),
        ("", None),
    ],
)
def test_how_long_to_wait_is_a_number_of_seconds_or_not_known(said: str, seconds: float | None) -> None:
    assert seconds_to_wait({"retry-after": said}) == seconds


@given(st.from_regex(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{1,5} [\d:]{0,12} ?[-+]?[\dA-Z]{0,9}") | st.text())
def test_no_wait_that_a_server_asks_for_is_an_error(said: str) -> None:
    seconds = seconds_to_wait({"retry-after": said})
    assert seconds is None or seconds >= 0


GEMINI = LLM(model="gemini/gemini-2.5-flash")
MINUTE: dict[str, Any] = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details. For more information on "
        "this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. Please retry in 26.04s.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}],
            },
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26s"},
        ],
    }
}
DAY = json.loads(json.dumps(MINUTE).replace("PerMinute", "PerDay"))


@pytest.mark.parametrize("body", [MINUTE, [MINUTE]])
def test_a_limit_of_a_minute_passes_after_the_time_that_google_names(body: Any) -> None:
    said, codes = extract_message(body)
    refused = model_error(ProviderError(status=429, message=said, codes=codes, retry_after=delay_in_body(body)), GEMINI)
    assert isinstance(refused, RateLimited)
    assert (refused.retryable, refused.retry_after) == (True, 26.0)
    assert "rate limit is reached" in str(refused)
    streamed = refused_in_stream(GEMINI, body)
    assert (streamed.retryable, streamed.retry_after) == (True, 26.0)


def test_a_limit_of_a_day_does_not_pass_while_anybody_waits() -> None:
    refused = refused_in_stream(GEMINI, DAY)
    assert isinstance(refused, RateLimited)
    assert not refused.retryable
    assert "limit of a day" in str(refused)


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"message": "Rate limit reached. Please try again in 20ms."}}, 0.02),
        ({"error": {"message": "Please retry in 3s."}}, 3.0),
        ({"error": {"message": "x", "details": [{"retryDelay": "0.5s"}, "odd", 7]}}, 0.5),
        ({"error": {"message": "x", "details": [{"retryDelay": "soon"}]}}, None),
        ({"error": "slow down"}, None),
        ([], None),
        ("slow down", None),
    ],
)
def test_the_time_to_try_again_is_read_from_a_body_where_it_says_one(body: Any, seconds: float | None) -> None:
    assert delay_in_body(body) == seconds


NO_CREDIT = (RateLimited, "no credit left")
REFUSED = (ContentPolicy, "refused the content")
ELSEWHERE = (AuthenticationError, "does not serve the place")
WRONG_KEY = (AuthenticationError, "did not accept the key in LLM(api_key=...)")


@pytest.mark.parametrize(
    ("status", "said", "codes", "meant"),
    [
        (429, "You exceeded your current quota, please check your plan.", "insufficient_quota", NO_CREDIT),
        (429, "Your prepayment credits are depleted. Manage your project.", "RESOURCE_EXHAUSTED", NO_CREDIT),
        (403, "Your account is suspended", "exceeded_current_quota_error", NO_CREDIT),
        (400, "Your credit balance is too low to access the Anthropic API.", "invalid_request_error", NO_CREDIT),
        (402, "Insufficient Balance", "", NO_CREDIT),
        (403, 'openai/x requires moderation. Your input was flagged for "violence".', "", REFUSED),
        (400, "Invalid prompt: it may violate our usage policy.", "invalid_prompt", REFUSED),
        (403, "Country, region, or territory not supported", "unsupported_country_region_territory", ELSEWHERE),
        (400, "User location is not supported for the API use.", "FAILED_PRECONDITION", ELSEWHERE),
        (400, "Incorrect API key provided: xa***. Get one from https://console.x.ai.", "", WRONG_KEY),
        (400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT API_KEY_INVALID", WRONG_KEY),
    ],
)
def test_a_refusal_is_told_for_what_it_is_and_not_for_its_status(
    status: int, said: str, codes: str, meant: tuple[type[ModelError], str]
) -> None:
    error = ProviderError(status=status, message=said, codes=codes)
    refused = model_error(error, LLM(model="xai/m", api_key="sk-any-key"))
    assert type(refused) is meant[0]
    assert meant[1] in str(refused)
    assert said in str(refused)
    assert not refused.retryable


TOO_LONG = """\
request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it
Context size has been exceeded.
This model's maximum prompt length is 131072 but the request contains 140000 tokens.
Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)
<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]
Input length 40000 exceeds the maximum allowed length 32768.
Input length 40000 exceeds the maximum length 32768.
Prompt exceeds max length
Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4090 and 2048
The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).
Unable to submit request because the input token count is 40000 but model only supports up to 32768.""".splitlines()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        *((400, said) for said in TOO_LONG),
        (500, "Context size has been exceeded."),
        (413, "Request too large for model `m` on tokens per minute: Limit 6000, please reduce your message size."),
        (422, TOO_LONG[8]),
    ],
)
def test_a_request_that_is_too_long_is_known_by_the_words_of_each_server(status: int, said: str) -> None:
    refused = model_error(ProviderError(status=status, message=said), GROQ)
    assert type(refused) is ContextWindowExceeded
    assert not refused.retryable
    assert "Condense or shorten it" in str(refused)


def test_a_key_that_is_not_accepted_says_where_it_is_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-of-the-test")
    refused = model_error(ProviderError(status=401, message="Invalid API Key"), GROQ)
    assert "the key in GROQ_API_KEY (Invalid API Key). Check that it is complete" in str(refused)


@pytest.mark.parametrize("key", ["", "  "])
async def test_a_blank_key_is_named_before_anything_is_sent(key: str) -> None:
    with pytest.raises(AuthenticationError, match=r"the key in LLM\(api_key=...\) is empty"):
        await LLM("openai/gpt-5", api_key=key).complete([Message.user("Hi")])
