"""Which recorded models can be made again here, and by what.

A log may come from anywhere, so nothing in it decides what is imported: it names a kind of model. Some kinds are built in;
others are registered by this program (`register_model`) or by an installed distribution (an entry point in the group
"agentcore.models", as in `echo = "my_package.echo:EchoModel.from_record"`).

A log may come from another person, and the key in the environment goes to wherever a model is. So a recorded address has to
be one that was named here too: the provider's own, one in an environment variable, or one that the program allowed.
At an address of this machine, where servers of one's own are, a model is reached as well, but without a key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from agentcore._registry import load_declared
from agentcore.errors import AddressNotAllowed, AgentcoreError
from agentcore.llm.concurrency import LimitedModel
from agentcore.llm.fallback import FallbackLLM
from agentcore.llm.llm import LLM
from agentcore.llm.model import Model
from agentcore.llm.providers import HOSTS
from agentcore.llm.rate_limit import RateLimitedModel
from agentcore.llm.retry import RetryingModel
from agentcore.llm.router import RouterLLM

_PORTS: Final = {"http": 80, "https": 443}
_ADDRESSES: Final = ("base", "url", "uri", "endpoint", "host", "proxy", "domain")
"""Parts of the names of options that say where something is."""

_allowed: set[str] = set()

MODEL_ENTRY_POINTS: Final = "agentcore.models"
"""The entry point group in which an installed distribution declares its kinds of models."""

Restore: TypeAlias = Callable[[Mapping[str, Any]], Model]
"""Makes the models inside a recorded model again."""

ModelFactory: TypeAlias = Callable[[Mapping[str, Any], Restore], Model]
"""Makes a model again of what its `record()` gave; `restore` makes the models inside it."""


def _restore_llm(recorded: Mapping[str, Any], restore: Restore) -> LLM:  # noqa: ARG001 nothing is inside it
    return check_recorded_address(LLM.model_validate({name: recorded[name] for name in recorded if name != "kind"}))


_LLM: Final = "llm"
_factories: dict[str, ModelFactory] = {
    _LLM: _restore_llm,
    "fallback": FallbackLLM.from_record,
    "limited": LimitedModel.from_record,
    "rate_limited": RateLimitedModel.from_record,
    "retrying": RetryingModel.from_record,
    "router": RouterLLM.from_record,
}
"""Those that are imported with everything else; "text_calls" is declared as an entry point, as others' kinds are."""


def register_model(kind: str, factory: ModelFactory) -> None:
    """Make models again with this factory whose `record()` has this `kind`.

    Raises:
        ValueError: the kind has another factory.
    """
    if _factories.setdefault(kind, factory) != factory:
        raise ValueError(f"There is another factory for models of the kind {kind!r}. Choose another name.")


def restore_model(recorded: Mapping[str, Any]) -> Model:
    """Make a model again of what `record_model` gave. Keys are read from the environment.

    It may import what an installed distribution declares: call it in a worker thread where that must not block.

    Raises:
        AddressNotAllowed: It is at an address that was not named here, which would be sent a key.
        ValueError: It describes no model.
    """
    kind = recorded.get("kind", _LLM)
    if not isinstance(kind, str):
        raise ValueError(f"{kind!r} is not the name of a kind of model.")  # noqa: TRY004 the record is wrong, not the call
    factory = _factories.get(kind)
    if factory is None:
        factory = load_declared(MODEL_ENTRY_POINTS, kind, register="register_model", refuse=partial(_refuse, kind))
    try:
        return factory(recorded, restore_model)
    except (ValueError, AgentcoreError):
        raise
    except (TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"A recorded model of the kind {kind!r} can't be made again: {error!r}.") from error


def _refuse(kind: str, reason: str) -> ValueError:
    return ValueError(f"A model of the kind {kind!r} can't be made again here: {reason} You can also pass the agent.")


def allow_base_url(url: str) -> None:
    """Let models from a log be reached at this address, and below its path, with the key from the environment."""
    _allowed.add(url)


def check_recorded_address(llm: LLM) -> LLM:
    """Return a model from a log if nothing is sent to a stranger: as it is, or without a key if it is on this machine.

    Raises:
        AddressNotAllowed: It is elsewhere, and neither the provider, nor the environment, nor the program names the address.
    """
    host = HOSTS.get(llm.provider)
    name = llm.provider.upper()
    variables = () if host is None else host.url_variables
    variables = variables or (f"{name}_API_BASE", f"{name}_BASE_URL")
    known = {*_allowed, *(os.environ.get(variable, "").strip() for variable in variables)}
    strangers = [
        address
        for address in _addresses(llm)
        if not any(_is_within(address, each) for each in known if each)
        and not (host is not None and host.base_url is not None and _origin(address) == _origin(host.base_url))
    ]
    # Others than those that are reached over plain HTTP may have credentials besides a key.
    if host is None or not all(map(_is_on_this_machine, strangers)):
        for address in strangers:
            raise AddressNotAllowed(llm.model, address, variables[0])
    # An empty key is one that was given: the environment is not asked for another.
    return llm.model_copy(update={"api_key": ""}) if strangers else llm


def _addresses(llm: LLM) -> Iterator[str]:
    """Name all the places that the settings may send a key to."""
    if llm.base_url is not None:
        yield llm.base_url
    if "://" in llm.model:  # litellm takes some as addresses
        yield llm.model[llm.model.rfind("http", 0, llm.model.index("://")) :]
    yield from _addresses_in(llm.provider_options, named=False)


def _addresses_in(value: Any, *, named: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in cast("dict[str, Any]", value).items():
            yield from _addresses_in(part, named=named or any(word in name.lower() for word in _ADDRESSES))
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _addresses_in(part, named=named)
    elif isinstance(value, str) and (named or "://" in value):
        yield value


def _is_within(address: str, allowed: str) -> bool:
    origin = _origin(address)
    if origin is None or origin != _origin(allowed):
        return False
    path, below = (unquote(urlsplit(each).path).rstrip("/") for each in (address, allowed))
    return (path == below or path.startswith(f"{below}/")) and not {".", ".."} & set(path.split("/"))


def _origin(address: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port; None where there is no host or no port that can be."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname.rstrip("."), port) if parts.hostname else None


def _is_on_this_machine(address: str) -> bool:
    origin = _origin(address)
    if origin is None:
        return False
    try:
        return ip_address(origin[1]).is_loopback
    except ValueError:
        return origin[1] == "localhost"
