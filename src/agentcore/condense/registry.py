"""Which recorded condensers can be made again here.

A condenser is made again only if a factory is registered under its name: one of those that come with agentcore, one by this
program (`register_condenser`), or one by an installed distribution (an entry point in the group "agentcore.condensers", as
in `mine = "my_package:MyCondenser"`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pydantic import JsonValue

from agentcore._arguments import has_methods
from agentcore._registry import Factories
from agentcore.condense.condenser import Condenser, CondenserSpec
from agentcore.condense.masking import Masking
from agentcore.condense.pipeline import Pipeline
from agentcore.condense.structured import Structured
from agentcore.condense.summary import Summary
from agentcore.condense.window import Amortised, Window
from agentcore.llm import restore_model

CONDENSER_ENTRY_POINTS: Final = "agentcore.condensers"
"""The entry point group in which an installed distribution declares its condensers."""

CondenserFactory: TypeAlias = Callable[..., Condenser]
"""Makes a condenser of recorded parameters; its class itself, most often."""


def _summary(llm: Mapping[str, Any] | None = None, **params: Any) -> Summary:
    return Summary(llm=None if llm is None else restore_model(llm), **params)


def _structured(schema: Mapping[str, JsonValue], llm: Mapping[str, Any] | None = None, **params: Any) -> Structured:
    return Structured(schema, llm=None if llm is None else restore_model(llm), **params)


def _pipeline(condensers: list[JsonValue]) -> Pipeline:
    return Pipeline(*(resolve_condenser(CondenserSpec.model_validate(spec)) for spec in condensers))


_CONDENSERS: Final[Factories[Condenser]] = Factories(
    "condenser",
    lambda made: has_methods(made, "condense"),
    group=CONDENSER_ENTRY_POINTS,
    register="register_condenser",
    amortised=Amortised,
    masking=Masking,
    pipeline=_pipeline,
    structured=_structured,
    summary=_summary,
    window=Window,
)


def register_condenser(name: str, factory: CondenserFactory) -> None:
    """Make condensers recorded under this name with this factory.

    Raises:
        ValueError: The name has another factory.
    """
    _CONDENSERS.register(name, factory)


def resolve_condenser(spec: CondenserSpec) -> Condenser:
    """Make a recorded condenser again. It may import modules: call it in a worker thread where that must not block.

    Raises:
        ToolNotFound: It is not registered, or refused the parameters.
    """
    return _CONDENSERS.make(spec.name, spec.params)
