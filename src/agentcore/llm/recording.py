"""Models as a log holds them: `LLM`, and `FallbackLLM` of those; what a program made itself can't be written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import JsonValue

from agentcore import errors
from agentcore.llm.fallback import FallbackLLM
from agentcore.llm.llm import LLM
from agentcore.llm.model import Model

__all__ = ["record_model", "restore_model"]

_FALLBACK = "fallback"


def record_model(model: Model) -> dict[str, JsonValue] | None:
    """Write a model down, without keys; None where that is not possible."""
    if isinstance(model, LLM):
        return model.record()
    if not isinstance(model, FallbackLLM):
        return None
    models = [record_model(each) for each in model.models]
    ours = all(getattr(errors, kind.__name__, None) is kind for kind in model.on)
    if None in models or not ours:
        return None
    return {"kind": _FALLBACK, "models": cast("list[JsonValue]", models), "on": [kind.__name__ for kind in model.on]}


def restore_model(recorded: Mapping[str, Any]) -> Model:
    """Make a model again of what `record_model` gave. Keys are read from the environment.

    Raises:
        ValueError: It describes no model.
    """
    if "kind" not in recorded:
        return LLM.model_validate(recorded)
    if recorded["kind"] != _FALLBACK:
        raise ValueError(f"A model of kind {recorded['kind']!r} is not known here: a newer version recorded it.")
    return FallbackLLM(*map(restore_model, recorded["models"]), on=[getattr(errors, name) for name in recorded["on"]])
