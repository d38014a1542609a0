"""Short answers of Google's generateContent interface that are no replies, and the error that each has to give."""

from __future__ import annotations

from dataclasses import dataclass

from agentcore.errors import ContentPolicy, ModelError, ModelUnavailable, RateLimited
from gemini_exchanges import API, USED, Json, said, text

__all__ = ["REFUSED", "Refusal"]


@dataclass(frozen=True)
class Refusal:
    """An answer that is no reply."""

    name: str
    source: str
    events: list[Json]
    kind: type[ModelError]
    words: str
    retryable: bool = False


_BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}

REFUSED: list[Refusal] = [
    Refusal("a_blocked_prompt", API, [_BLOCKED], ContentPolicy, "refused the content (SAFETY)"),
    Refusal(
        "a_blocked_prompt_with_a_reason",
        "cloud.google.com/vertex-ai/generative-ai/docs/multimodal/configure-safety-filters",
        [{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "Not this."}}],
        ContentPolicy,
        "PROHIBITED_CONTENT: Not this.",
    ),
    Refusal(
        "model_armor",
        "cloud.google.com/security-command-center/docs/model-armor-vertex-integration",
        [
            {
                "candidates": [
                    {"content": {}, "finishReason": "MODEL_ARMOR", "finishMessage": "The response violated a filter."}
                ],
                "usageMetadata": USED,
            }
        ],
        ContentPolicy,
        "MODEL_ARMOR: The response violated a filter.",
    ),
    Refusal("a_blocked_reply", API, [said(reason="PROHIBITED_CONTENT")], ContentPolicy, "(PROHIBITED_CONTENT)"),
    Refusal(
        "a_call_that_is_none",
        API,
        [said(reason="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: look(")],
        ModelUnavailable,
        "MALFORMED_FUNCTION_CALL: Malformed function call: look(",
        retryable=True,
    ),
    Refusal("no_reason", API, [said(reason="OTHER")], ModelUnavailable, "says why: OTHER", retryable=True),
    Refusal(
        "an_error_in_the_middle",
        "github.com/google-gemini/gemini-cli/issues/1502",
        [said(text("Hel")), {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}],
        ModelUnavailable,
        "The model is overloaded.",
        retryable=True,
    ),
    Refusal(
        "a_limit_with_status_200",
        "github.com/RooCodeInc/Roo-Code/issues/3883",
        [
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota, please check your plan and billing details.",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26s"}],
                }
            }
        ],
        RateLimited,
        "rate limit is reached",
        retryable=True,
    ),
    Refusal(
        "a_candidate_without_anything", "made up", [{"candidates": [{"index": 0}]}], ModelError, "", retryable=True
    ),
    Refusal("something_else", "made up", [{"choices": []}], ModelUnavailable, '{"choices": []}', retryable=True),
    Refusal(
        "words_without_a_form", "made up", [{"detail": "no upstream"}], ModelUnavailable, "no upstream", retryable=True
    ),
]
