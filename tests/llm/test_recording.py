"""Models that a log holds: written down without keys, and made again by their kind."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agentcore.agent import Agent, record_agent
from agentcore.conversation import Conversation
from agentcore.errors import ContentPolicy
from agentcore.llm import (
    FALLBACK_ERRORS,
    LLM,
    AdaptiveLimiter,
    FallbackLLM,
    Features,
    LimitedModel,
    Model,
    RateLimitedModel,
    RetryingModel,
    RetryPolicy,
    RouterLLM,
    TokenBucket,
    at_random,
    by_length,
    by_media,
    describe_unrecorded,
    model_features,
    record_model,
    register_model,
    restore_model,
)
from agentcore.llm.text_calls import TextToolCalls
from agentcore.testing import ScriptedLLM, call
from agentcore.tools import ToolContext, tool

CLAUDE = LLM(model="anthropic/claude-sonnet-4-5", api_key="sk-secret", temperature=0)
OWN = LLM(model="qwen3", base_url="http://localhost:1/v1")


def test_a_model_comes_back_without_its_key() -> None:
    recorded = record_model(CLAUDE)
    assert recorded is not None
    assert "sk-secret" not in str(recorded)
    assert restore_model(recorded) == CLAUDE.model_copy(update={"api_key": None})


class OwnError(ContentPolicy):
    pass


WRAPPED: list[Model] = [
    FallbackLLM(CLAUDE, FallbackLLM(OWN, CLAUDE), on=(*FALLBACK_ERRORS, ContentPolicy)),
    RetryingModel(OWN, RetryPolicy(retries=2, jitter=0)),
    LimitedModel(OWN, AdaptiveLimiter(start=3, lowest=2, highest=7, shrink=0.25)),
    RateLimitedModel(OWN, TokenBucket(60), TokenBucket(1_000, burst=50)),
    RateLimitedModel(OWN, tokens=TokenBucket(7)),
    RouterLLM({"a": CLAUDE, "b": OWN}, by_media(text="a", multimodal="b")),
    RouterLLM({"a": CLAUDE, "b": OWN}, by_length(short="a", long="b", tokens=9)),
    RouterLLM({"a": CLAUDE, "b": OWN}, at_random("a", "a", "b", seed="s")),
    TextToolCalls(OWN, stop=False),
    LimitedModel(RetryingModel(FallbackLLM(TextToolCalls(OWN), CLAUDE)), AdaptiveLimiter()),
]


@pytest.mark.parametrize("model", WRAPPED, ids=lambda model: type(model).__name__)
def test_a_wrapper_comes_back_with_what_it_wraps_and_its_numbers(model: Model) -> None:
    recorded = record_model(model)
    assert recorded is not None
    assert "sk-secret" not in str(recorded)
    restored = restore_model(recorded)
    assert type(restored) is type(model)
    # The numbers and names that it was made with, which its repr and its record show.
    assert restored.name == model.name
    assert record_model(restored) == recorded


SCRIPTED = ScriptedLLM(["Hi."])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (SCRIPTED, "ScriptedLLM 'scripted'"),
        (FallbackLLM(CLAUDE, SCRIPTED), "ScriptedLLM 'scripted'"),
        (LimitedModel(SCRIPTED, AdaptiveLimiter()), "ScriptedLLM 'scripted'"),
        (RetryingModel(FallbackLLM(CLAUDE, SCRIPTED)), "ScriptedLLM 'scripted'"),
        (TextToolCalls(SCRIPTED), "ScriptedLLM 'scripted'"),
        (FallbackLLM(OWN, on=[OwnError]), "OwnError in `on` of FallbackLLM 'openai/qwen3'"),
        (RouterLLM({"a": OWN}, lambda request: "a"), "the selector of RouterLLM 'openai/qwen3'"),
        (RouterLLM({"a": SCRIPTED}, at_random("a")), "ScriptedLLM 'scripted'"),
        (RateLimitedModel(OWN, estimate=lambda messages, tools: 1), "the estimate of RateLimitedModel 'openai/qwen3'"),
    ],
)
def test_what_can_not_be_written_down_of_a_model_is_named(model: Model, reason: str) -> None:
    assert record_model(model) is None
    assert describe_unrecorded(model) == reason
    assert record_agent(Agent(llm=model))[1] == (f"the model ({reason})",)


class Echo:
    """A model of somebody's own that can be written down."""

    def __init__(self, inner: Model, word: str) -> None:
        self.inner = inner
        self.name = f"echo of {inner.name}"
        self.word = word
        self.complete = inner.complete
        self.stream = inner.stream

    async def get_features(self) -> Features | None:
        return await model_features(self.inner)

    def record(self) -> dict[str, JsonValue] | None:
        return {"kind": "test_recording.echo", "inner": record_model(self.inner), "word": self.word}

    @classmethod
    def from_record(cls, recorded: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], Model]) -> Echo:
        return cls(restore(recorded["inner"]), recorded["word"])


def test_a_kind_of_the_programs_own_comes_back_where_it_is_registered() -> None:
    recorded = record_model(FallbackLLM(Echo(OWN, "hey"), CLAUDE))
    assert recorded is not None
    with pytest.raises(ValueError, match="register_model"):
        restore_model(recorded)
    register_model("test_recording.echo", Echo.from_record)
    register_model("test_recording.echo", Echo.from_record)
    restored = restore_model(recorded)
    assert record_model(restored) == recorded
    with pytest.raises(ValueError, match="another factory"):
        register_model("test_recording.echo", lambda recorded, restore: OWN)
    with pytest.raises(ValueError, match="another factory"):
        register_model("fallback", lambda recorded, restore: OWN)


def install(folder: Path, name: str, value: str) -> None:
    """Install a distribution that declares a kind of model."""
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[agentcore.models]\ninstalled_echo = {value}\n", encoding="utf-8")


def test_a_kind_that_an_installed_package_declares_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "package_of_a_model.py").write_text(
        "from agentcore.llm import LLM\ndef make(recorded, restore):\n    return LLM(model=recorded['model'])\n",
        encoding="utf-8",
    )
    install(tmp_path, "one", "package_of_a_model:make")
    assert restore_model({"kind": "installed_echo", "model": "openai/x"}) == LLM(model="openai/x")
    install(tmp_path, "two", "package_of_a_model:other")
    with pytest.raises(ValueError, match="several installed packages"):
        restore_model({"kind": "installed_echo", "model": "openai/x"})


@pytest.mark.parametrize(
    "recorded",
    [
        {"kind": "unheard of"},
        {"kind": "os:system"},
        {"kind": ["llm"]},
        {"kind": "fallback"},
        {"kind": "fallback", "models": [OWN.record()], "on": ["ValueError"]},
        {"kind": "fallback", "models": [OWN.record()], "on": ["annotations"]},
        {"kind": "fallback", "models": [], "on": []},
        {"kind": "limited", "model": OWN.record(), "limiter": {"start": "many"}},
        {"kind": "limited", "model": OWN.record(), "limiter": {"other": 1}},
        {"kind": "router", "models": {"a": OWN.record()}, "select": {"by": "eval"}},
        {"kind": "router", "models": {"a": OWN.record()}, "select": {"by": "random", "keys": []}},
        {"kind": "retrying", "model": "openai/x", "policy": {}},
        {"model": 3},
        {},
        functools.reduce(
            lambda inner, _: {"kind": "retrying", "model": inner, "policy": {}}, range(3_000), OWN.record()
        ),
    ],
    ids=lambda recorded: ",".join(map(str, recorded)),
)
def test_what_describes_no_model_is_refused(recorded: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        restore_model(recorded)


class Bare:
    """A model that a small program made, with what answering takes and no more."""

    def __init__(self) -> None:
        self.name = "bare"
        self.complete = SCRIPTED.complete
        self.stream = SCRIPTED.stream


async def test_a_model_without_features_and_record_is_unknown_and_can_be_wrapped() -> None:
    bare: Any = Bare()
    for model in (bare, FallbackLLM(CLAUDE, bare), LimitedModel(bare, AdaptiveLimiter())):
        assert await model_features(model) is None
        assert record_model(model) is None
        assert describe_unrecorded(model) == "Bare 'bare'"
    Agent(llm=bare)


SEES = LLM(model="openai/sees", features=Features(vision=True, pdf=True, context_window=100, tool_calls=True))
READS = LLM(model="openai/reads", features=Features(vision=False, context_window=900, response_schema=True))


@pytest.mark.parametrize(
    ("model", "features"),
    [
        (RetryingModel(SEES), SEES.features),
        (LimitedModel(SEES, AdaptiveLimiter()), SEES.features),
        (RateLimitedModel(SEES), SEES.features),
        (TextToolCalls(READS), Features(vision=False, context_window=900, tool_calls=True, response_schema=False)),
        (FallbackLLM(SEES), SEES.features),
        (FallbackLLM(SEES, READS), Features(vision=False, context_window=100)),
        (RouterLLM({"a": SEES, "b": READS}, lambda request: "a"), Features(vision=False, context_window=100)),
        (
            RouterLLM({"a": SEES, "b": READS}, by_media(text="b", multimodal="a")),
            Features(vision=True, pdf=True, context_window=100),
        ),
        (
            RouterLLM({"a": SEES, "b": READS}, by_length(short="a", long="b", tokens=90)),
            Features(vision=False, context_window=900),
        ),
        (RouterLLM({"a": SEES, "b": SCRIPTED}, by_media(text="b", multimodal="a")), Features(vision=True, pdf=True)),
        (RouterLLM({"a": SEES, "b": SCRIPTED}, by_media(text="a", multimodal="b")), None),
    ],
)
async def test_a_wrapper_says_what_the_models_inside_can_do(model: Model, features: Features | None) -> None:
    assert await model_features(model) == features


async def test_a_tool_is_told_through_a_wrapper_what_the_model_can_look_at() -> None:
    told: list[bool | None] = []

    @tool
    async def look(ctx: ToolContext) -> str:
        """Look."""
        told.extend([await ctx.model_accepts("image"), await ctx.model_accepts("pdf")])
        return "seen"

    scripted = ScriptedLLM([call("look"), "Done."], features=Features(vision=True))
    async with Conversation(Agent(llm=LimitedModel(scripted, AdaptiveLimiter()), tools=[look])) as conversation:
        await conversation.run("Go.")
    assert told == [True, None]
