"""Which recorded models can be made again here, and by what.

A log may come from anywhere, so nothing in it decides what is imported: it names a kind of model. Some kinds are built in;
others are registered by this program (`register_model`) or by an installed distribution (an entry point in the group
"agentcore.models", as in `echo = "my_package.echo:EchoModel.from_record"`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agentcore.errors import AgentcoreError
from agentcore.llm.addresses import check_recorded_address
from agentcore.llm.llm import LLM
from agentcore.llm.model import Model

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MODEL_ENTRY_POINTS: Final = "agentcore.models"
"""The entry point group in which an installed distribution declares its kinds of models."""

Restore: TypeAlias = Callable[[Mapping[str, Any]], Model]
"""Makes the models inside a recorded model again."""

ModelFactory: TypeAlias = Callable[[Mapping[str, Any], Restore], Model]
"""Makes a model again of what its `record()` gave; `restore` makes the models inside it."""


def _restore_llm(recorded: Mapping[str, Any], restore: Restore) -> LLM:  # noqa: ARG001 nothing is inside it
    return check_recorded_address(LLM.model_validate({name: recorded[name] for name in recorded if name != "kind"}))


_LLM: Final = "llm"
_factories: dict[str, ModelFactory] = {_LLM: _restore_llm}
_WRAPPERS: Final = {
    "fallback": "FallbackLLM",
    "limited": "LimitedModel",
    "rate_limited": "RateLimitedModel",
    "retrying": "RetryingModel",
    "router": "RouterLLM",
}
"""Names of the index, which imports them when they are first asked for; "text_calls" is an entry point, as others' kinds are."""


def register_model(kind: str, factory: ModelFactory) -> None:
    """Make models again with this factory whose `record()` has this `kind`.

    Raises:
        ValueError: the kind has another factory.
    """
    if kind in _WRAPPERS or _factories.setdefault(kind, factory) != factory:
        raise ValueError(f"There is another factory for models of the kind {kind!r}. Choose another name.")


def restore_model(recorded: Mapping[str, Any]) -> Model:
    """Make a model again of what `record_model` gave. Keys are read from the environment.

    It may import what an installed distribution declares: call it in a worker thread where that must not block.

    Raises:
        AddressNotAllowed: It is at an address that nobody here named, which would be sent a key.
        ValueError: It describes no model.
    """
    kind = recorded.get("kind", _LLM)
    if not isinstance(kind, str):
        raise ValueError(f"{kind!r} is not the name of a kind of model.")  # noqa: TRY004 the record is wrong, not the call
    factory = _factories.get(kind) or _built_in(kind) or _declared(kind)
    try:
        return factory(recorded, restore_model)
    except (ValueError, AgentcoreError):
        raise
    except (TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"A recorded model of the kind {kind!r} can't be made again: {error!r}.") from error


def _built_in(kind: str) -> ModelFactory | None:
    name = _WRAPPERS.get(kind)
    return getattr(import_module("agentcore.llm"), name).from_record if name is not None else None


def _declared(kind: str) -> ModelFactory:
    """Load the factory that an installed distribution declares for the kind."""
    # Here because importing it takes a fifth as long as importing pydantic, and few programs restore such a model.
    from importlib.metadata import entry_points  # noqa: PLC0415

    points = {point.value: point for point in entry_points(group=MODEL_ENTRY_POINTS, name=kind)}
    if len(points) != 1:
        declared = f": several packages declare it ({', '.join(sorted(points))})" if points else ""
        raise ValueError(
            f"A model of the kind {kind!r} can't be made again here{declared}. Register the kind with `register_model`, "
            "install the package that it is from, or pass the agent."
        )
    (point,) = points.values()
    return _loaded(point)


def _loaded(point: EntryPoint) -> ModelFactory:
    try:
        factory: ModelFactory = point.load()
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{point.value!r}, which makes models of the kind {point.name!r}, can't be imported: {error}"
        ) from error
    return factory
