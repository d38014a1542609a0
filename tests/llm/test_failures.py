from __future__ import annotations

from typing import Any

import pytest

from agentcore.errors import BadRequest, ModelError, ModelUnavailable, RateLimited
from agentcore.llm import LLM
from agentcore.llm.failures import Refusal, model_error, refused_in_stream

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
