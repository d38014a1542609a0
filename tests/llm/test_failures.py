from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import BadRequest, ModelError, ModelUnavailable, RateLimited
from agentcore.llm import LLM
from agentcore.llm.failures import Refusal, model_error, refused_in_stream, seconds_to_wait

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
    whole = model_error(Refusal(status=400, said=said, codes="tool_use_failed invalid_request_error"), GROQ)
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


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{1,5} [\d:]{0,12} ?[-+]?[\dA-Z]{0,24}"))
def test_no_wait_that_a_server_asks_for_is_an_error(said: str) -> None:
    seconds = seconds_to_wait({"retry-after": said})
    assert seconds is None or seconds >= 0
