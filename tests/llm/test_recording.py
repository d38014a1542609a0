from __future__ import annotations

import pytest

from agentcore.errors import ContentPolicy
from agentcore.llm import LLM, MOVES_ON, FallbackLLM, record_model, restore_model
from agentcore.testing import ScriptedLLM

CLAUDE = LLM(model="anthropic/claude-sonnet-4-5", api_key="sk-secret", temperature=0)
OWN = LLM(model="qwen3", base_url="http://localhost:1/v1")


def test_a_model_comes_back_without_its_key() -> None:
    recorded = record_model(CLAUDE)
    assert recorded is not None
    assert "sk-secret" not in str(recorded)
    assert restore_model(recorded) == CLAUDE.model_copy(update={"api_key": None})


def test_models_that_stand_in_for_each_other_come_back_in_their_order() -> None:
    recorded = record_model(FallbackLLM(CLAUDE, FallbackLLM(OWN, CLAUDE), on=(*MOVES_ON, ContentPolicy)))
    assert recorded is not None
    assert "sk-secret" not in str(recorded)
    restored = restore_model(recorded)
    assert isinstance(restored, FallbackLLM)
    first, second = restored.models
    assert first.name == CLAUDE.name
    assert isinstance(second, FallbackLLM)
    assert [model.name for model in second.models] == [OWN.name, CLAUDE.name]
    assert restored.on == (*MOVES_ON, ContentPolicy)
    assert second.on == MOVES_ON


class OwnError(ContentPolicy):
    pass


def test_what_a_program_made_itself_is_not_written_down() -> None:
    assert record_model(ScriptedLLM(["Hi."])) is None
    assert record_model(FallbackLLM(CLAUDE, ScriptedLLM(["Hi."]))) is None
    assert record_model(FallbackLLM(CLAUDE, OWN, on=[OwnError])) is None


def test_a_kind_of_a_newer_version_is_named() -> None:
    with pytest.raises(ValueError, match="'router' is not known here"):
        restore_model({"kind": "router"})
