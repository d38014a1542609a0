"""Short answers of Google's generateContent interface, and what each says: written by hand, from the interface's reference.

`source` says where the shape was taken from: a page of https://ai.google.dev (as of November 2026), or an issue that shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["API", "EXCHANGES", "USED", "Exchange", "Json", "said", "text"]

Json = dict[str, Any]

USED: Json = {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14}


@dataclass(frozen=True)
class Exchange:
    """An answer, as the events of a stream, and the reply that it has to give."""

    name: str
    source: str
    events: list[Json]
    blocks: list[tuple[Any, ...]]
    """As `(type, what it says...)`; blocks that only the provider reads are left out."""
    stop: str = "end"
    usage: tuple[int, int, int, int] = (10, 4, 0, 0)
    """Read, written, read from the cache, thought."""
    cited: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, "str | None"]])
    """Words and the address of the source."""
    sent: list[Json] | None = None
    """The parts of the next request; None where they are those of the answer."""
    tier: str | None = None

    @property
    def parts(self) -> list[Json]:
        """All the parts of the answer."""
        return [part for event in self.events for part in event["candidates"][0].get("content", {}).get("parts", ())]


def said(*parts: Json, reason: str | None = None, used: Json | None = None, **more: Any) -> Json:
    """Build one event; its candidate has the fields in `more`."""
    candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **more}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "usageMetadata": used or USED, "modelVersion": "gemini-x", "responseId": "r1"}


def text(words: str, **more: Any) -> Json:
    return {"text": words, **more}


def call(name: str, args: Json | None = None, *, id: str | None = None, **more: Any) -> Json:  # noqa: A002 - Google's word
    made = {"name": name, "args": args or {}} | ({"id": id} if id else {})
    return {"functionCall": made, **more}


WEB = {"web": {"uri": "https://example.com/a", "title": "A"}}
WEB_B = {"web": {"uri": "https://example.com/b", "title": "B"}}
PNG = "iVBORw0KGgo="
API = "ai.google.dev/api/generate-content"
SIGNATURES = "ai.google.dev/gemini-api/docs/thought-signatures"
SEARCH = "ai.google.dev/gemini-api/docs/google-search"

EXCHANGES: list[Exchange] = [
    Exchange("words", API, [said(text("Hello."), reason="STOP")], [("text", "Hello.")]),
    Exchange(
        "words_in_pieces",
        API,
        [said(text("Hel")), said(text("lo")), said(text("."), reason="STOP")],
        [("text", "Hello.")],
        sent=[text("Hello.")],
    ),
    Exchange(
        "cut_off_at_its_limit", API, [said(text("Once upon"), reason="MAX_TOKENS")], [("text", "Once upon")], "length"
    ),
    Exchange(
        "nothing_but_thinking_until_the_limit",
        "github.com/googleapis/python-genai/issues/782",
        [
            {
                **said(reason="MAX_TOKENS", used={"promptTokenCount": 10, "thoughtsTokenCount": 60}),
                "candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}],
            }
        ],
        [],
        "length",
        (10, 60, 0, 60),
    ),
    Exchange(
        "cached_and_thinking_tokens",
        API,
        [
            said(
                text("Yes."),
                reason="STOP",
                used={
                    "promptTokenCount": 2000,
                    "candidatesTokenCount": 2,
                    "thoughtsTokenCount": 30,
                    "cachedContentTokenCount": 1500,
                    "toolUsePromptTokenCount": 100,
                    "serviceTier": "standard",
                },
            )
        ],
        [("text", "Yes.")],
        usage=(2100, 32, 1500, 30),
        tier="standard",
    ),
    Exchange(
        "thoughts_before_words",
        "ai.google.dev/gemini-api/docs/thinking",
        [said(text("**Plan**", thought=True)), said(text(" More.", thought=True)), said(text("Done."), reason="STOP")],
        [("thinking", "**Plan** More.", None), ("text", "Done.")],
        sent=[text("**Plan** More.", thought=True), text("Done.")],
    ),
    Exchange(
        "signed_words", SIGNATURES, [said(text("Done.", thoughtSignature="c2ln"), reason="STOP")], [("text", "Done.")]
    ),
    Exchange(
        "words_whose_last_piece_is_signed",
        SIGNATURES,
        [said(text("I have ")), said(text("done it.", thoughtSignature="c2ln"), reason="STOP")],
        [("text", "I have done it.")],
    ),
    Exchange(
        "signature_in_an_empty_piece_at_the_end",
        SIGNATURES,
        [said(text("Done.")), said(text("", thoughtSignature="c2ln"), reason="STOP")],
        [("text", "Done.")],
    ),
    Exchange("nothing_but_a_signature", SIGNATURES, [said(text("", thoughtSignature="c2ln"), reason="STOP")], []),
    Exchange(
        "signed_thought",
        SIGNATURES,
        [said(text("Hm.", thought=True, thoughtSignature="dA=="), text("Done."), reason="STOP")],
        [("thinking", "Hm.", "dA=="), ("text", "Done.")],
    ),
    Exchange(
        "signed_call_with_an_id",
        SIGNATURES,
        [said(call("look", {"at": "x"}, id="c1", thoughtSignature="c2ln"), reason="STOP")],
        [("tool_call", "c1", "look", {"at": "x"})],
        "tool_calls",
    ),
    Exchange(
        "call_without_an_id",
        "ai.google.dev/gemini-api/docs/function-calling",
        [said(text("I look."), call("look"), reason="STOP", finishMessage="Model generated function call(s).")],
        [("text", "I look."), ("tool_call", "r1_0", "look", {})],
        "tool_calls",
        sent=[text("I look."), call("look", id="r1_0")],
    ),
    Exchange(
        "calls_at_once_of_which_the_first_is_signed",
        SIGNATURES,
        [
            said(text("Both.", thought=True)),
            said(call("look", {"at": "x"}, id="c1", thoughtSignature="c2ln")),
            said(call("look", {"at": "y"}, id="c2"), reason="STOP"),
        ],
        [
            ("thinking", "Both.", None),
            ("tool_call", "c1", "look", {"at": "x"}),
            ("tool_call", "c2", "look", {"at": "y"}),
        ],
        "tool_calls",
    ),
    Exchange(
        "words_after_a_call",
        SIGNATURES,
        [said(call("look", id="c1", thoughtSignature="YQ=="), text("Now.", thoughtSignature="Yg=="), reason="STOP")],
        [("tool_call", "c1", "look", {}), ("text", "Now.")],
        "tool_calls",
    ),
    Exchange(
        "grounded_words",
        SEARCH,
        [
            said(
                text("Zürich is large. So is Genf."),
                reason="STOP",
                groundingMetadata={
                    "webSearchQueries": ["large towns"],
                    "searchEntryPoint": {"renderedContent": "<div></div>"},
                    "groundingChunks": [WEB, WEB_B],
                    "groundingSupports": [
                        # Bytes, of which "ü" is two.
                        {"segment": {"endIndex": 17, "text": "Zürich is large."}, "groundingChunkIndices": [0]},
                        {"segment": {"startIndex": 18, "endIndex": 29}, "groundingChunkIndices": [0, 1]},
                    ],
                },
            )
        ],
        [("text", "Zürich is large. So is Genf.")],
        cited=[
            ("Zürich is large.", "https://example.com/a"),
            ("So is Genf.", "https://example.com/a"),
            ("So is Genf.", "https://example.com/b"),
        ],
    ),
    Exchange(
        "sources_for_no_words_in_particular",
        SEARCH,
        [said(text("Large.")), said(text(""), reason="STOP", groundingMetadata={"groundingChunks": [WEB]})],
        [("text", "Large.")],
        cited=[("", "https://example.com/a")],
        sent=[text("Large.")],
    ),
    Exchange(
        "a_page_that_was_read",
        "ai.google.dev/gemini-api/docs/url-context",
        [
            said(
                text("It says hello."),
                reason="STOP",
                urlContextMetadata={
                    "urlMetadata": [
                        {"retrievedUrl": "https://a.example", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"},
                        {"retrievedUrl": "https://b.example", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_ERROR"},
                    ]
                },
            )
        ],
        [("text", "It says hello.")],
        cited=[("", "https://a.example")],
    ),
    Exchange(
        "words_that_are_somebody_elses",
        API,
        [
            said(
                text("To be or not to be."),
                reason="STOP",
                citationMetadata={"citationSources": [{"startIndex": 0, "endIndex": 19, "uri": "https://h.example"}]},
            )
        ],
        [("text", "To be or not to be.")],
        cited=[("To be or not to be.", "https://h.example")],
    ),
    Exchange(
        "code_that_was_run",
        "ai.google.dev/gemini-api/docs/code-execution",
        [
            said(text("I compute."), {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}}),
            said({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}),
            said(text("It is 42."), reason="STOP"),
        ],
        [("text", "I compute."), ("text", "It is 42.")],
    ),
    Exchange(
        "a_tool_of_googles_own",
        "ai.google.dev/gemini-api/docs/tool-combination",
        [
            said(
                {
                    "toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}, "id": "t1"},
                    "thoughtSignature": "YQ==",
                }
            ),
            said({"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "t1"}}),
            said(text("Found."), call("keep", {"it": 1}, id="c1", thoughtSignature="Yg=="), reason="STOP"),
        ],
        [("text", "Found."), ("tool_call", "c1", "keep", {"it": 1})],
        "tool_calls",
    ),
    Exchange(
        "a_part_of_a_kind_that_nobody_knows",
        "made up",
        [said({"hologram": {"data": [1, 2]}, "thoughtSignature": "YQ=="}, text("Look."), reason="STOP")],
        [("text", "Look.")],
    ),
    Exchange(
        "a_signed_picture",
        "ai.google.dev/gemini-api/docs/image-generation",
        [
            said(text("Here:")),
            said({"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "YQ=="}, reason="STOP"),
        ],
        [("text", "Here:"), ("image", "image/png", PNG)],
    ),
    Exchange(
        "a_sketch_of_a_picture_is_a_thought",
        "ai.google.dev/gemini-api/docs/image-generation",
        [
            said(
                {"inlineData": {"mimeType": "image/png", "data": PNG}, "thought": True},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                reason="STOP",
            )
        ],
        [("image", "image/png", PNG)],
    ),
    Exchange(
        "speech",
        "ai.google.dev/gemini-api/docs/speech-generation",
        [said({"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AAAA"}}, reason="STOP")],
        [("audio", "audio/L16;codec=pcm;rate=24000", "AAAA")],
    ),
    Exchange(
        "speech_in_pieces",
        "ai.google.dev/gemini-api/docs/speech-generation",
        [
            said({"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AA=="}}),
            said({"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AQI="}}, reason="STOP"),
        ],
        [("audio", "audio/L16;rate=24000", "AAEC")],
        sent=[{"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AAEC"}}],
    ),
    Exchange(
        "blocked_in_the_middle",
        API,
        [said(text("The recipe ")), said(reason="SAFETY", finishMessage="It is dangerous.")],
        [("text", "The recipe "), ("refusal", "It is dangerous.")],
        "content_filter",
        sent=[text("The recipe "), text("It is dangerous.")],
    ),
    Exchange(
        "counts_in_an_event_of_their_own",
        "github.com/google-gemini/gemini-cli/issues/2525",
        [
            {**said(text("Hi."), reason="STOP"), "usageMetadata": {}},
            {"usageMetadata": USED, "modelVersion": "gemini-x", "responseId": "r1", "candidates": [{}]},
        ],
        [("text", "Hi.")],
    ),
]
