"""Agents that clients bring: a record, and a model key that stays in memory. Never with a key of the environment.

What the record names may be hostile: addresses inside of the server's network, options that have litellm read credentials
of the machine, models inside of a condenser. All of that is refused before the agent is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from ipaddress import ip_network
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import anyio
from anyio.to_thread import run_sync
from pydantic import JsonValue, SecretStr, ValidationError

from agentcore.agent import Agent, restore_agent
from agentcore.errors import AgentcoreError
from agentcore.llm import LLM, FallbackLLM, LimitedModel, Model, RateLimitedModel, RetryingModel, RouterLLM
from agentcore.llm.llm import goes_native
from agentcore.llm.providers import HOSTS
from agentcore.tools import register_tool
from agentcore_sandbox.network.addresses import Address, canonical, private_kind, resolve
from agentcore_serve.agents.parts import DEFAULT_PARTS, AllowedParts, check_parts
from agentcore_serve.refused import Refused
from agentcore_tools import FACTORIES

_LOOK_UP_SECONDS: Final = 10.0
_SECRETS: Final = frozenset({"api_key", "secret_headers"})

_Wrapped = Callable[[Mapping[str, Any], Callable[[Mapping[str, Any]], Model]], Model]

_WRAPPERS: Final[Mapping[str, _Wrapped]] = MappingProxyType(
    {
        "fallback": FallbackLLM.from_record,
        "limited": LimitedModel.from_record,
        "rate_limited": RateLimitedModel.from_record,
        "retrying": RetryingModel.from_record,
        "router": RouterLLM.from_record,
    }
)


class OwnAgent(NamedTuple):
    """An agent that a client brings."""

    record: Mapping[str, JsonValue]
    """As `record_agent` writes it."""
    model_key: SecretStr | None = None
    """The key of its model; None sends none, as after a restart, until the client passes it again."""


async def restore_own_agent(own: OwnAgent, allowed: Sequence[str] = (), parts: AllowedParts = DEFAULT_PARTS) -> Agent:
    """Make a client's agent, which uses the client's key and no other.

    Args:
        own: The agent's record and key.
        allowed: Names of hosts, addresses and networks that are private and may be reached all the same.
        parts: The tools and other parts that it may have besides those that come with agentcore.

    Raises:
        Refused: The record is not an agent's, or names what is not allowed (422).
    """
    recorded = own.record.get("llm")
    if not isinstance(recorded, dict):
        raise _refusal("agent_refused", "The agent's record names no model: an agent of your own brings its model.")
    check_parts(own.record, parts)
    try:
        found: list[LLM] = []
        llm = _restore_model(own.model_key, found, recorded)
        for each in found:
            await _check_address(each, allowed)
        # Finding tools reads files and imports modules.
        return await run_sync(partial(_restore, dict(own.record), llm))
    except Refused:
        raise
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in detail["loc"])
        raise _refusal("agent_refused", f"The agent's record does not fit: {where}: {detail['msg']}.") from None
    except AgentcoreError as error:
        raise _refusal("agent_refused", str(error)) from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise _refusal("agent_refused", "The agent's record is not what `record_agent` writes.") from None


def _restore(record: dict[str, Any], llm: Model) -> Agent:
    for name, factory in FACTORIES.items():  # a source checkout declares no entry points
        register_tool(name, factory)
    return restore_agent(record, llm=llm)


def _restore_model(key: SecretStr | None, found: list[LLM], recorded: Mapping[str, Any]) -> Model:
    """Make a model of its record, and note each one that is reached over the network."""
    kind = recorded.get("kind", "llm")
    if kind != "llm":
        wrapper = _WRAPPERS.get(kind) if isinstance(kind, str) else None
        if wrapper is None:
            raise _refusal(
                "agent_refused", f"A model of another kind than LLM and {', '.join(_WRAPPERS)} is not possible."
            )
        return wrapper(recorded, partial(_restore_model, key, found))
    if not _SECRETS.isdisjoint(recorded):
        raise _refusal("agent_refused", "The agent's record holds a key, and records are kept: send it as model_key.")
    fields = {name: value for name, value in recorded.items() if name != "kind"}
    # An empty key is one that was given: the environment is not asked for another.
    llm = LLM.model_validate({**fields, "api_key": key or SecretStr("")})
    if llm.provider not in HOSTS or not goes_native(llm):
        raise _refusal(
            "agent_refused",
            "A model of your own has to be one that is reached over plain HTTP: litellm would use this server's credentials.",
        )
    found.append(llm)
    return llm


async def _check_address(llm: LLM, allowed: Sequence[str]) -> None:
    """Refuse a model whose address, or an address that its name resolves to, is private."""
    host = HOSTS[llm.provider]
    url = host.address(llm.base_url)
    if url is None or (llm.base_url is None and url == host.base_url and url.startswith("https://")):
        return  # the provider's own; those of servers of one's own, as ollama's, are of this machine
    parts = urlsplit(url)
    name = (parts.hostname or "").rstrip(".")
    if name.lower() in {each.lower() for each in allowed}:
        return
    networks = [network for each in allowed if (network := _network(each)) is not None]
    for found in await _resolve(name, parts.port or (443 if parts.scheme == "https" else 80)):
        address = canonical(found)
        if any(address.version == network.version and address in network for network in networks):
            continue
        if private_kind(address) is not None:
            raise _refusal(
                "address_not_allowed",
                "The model's address is on a private network, which models of clients may not be at. "
                "Whoever runs this server can allow it with AGENTCORE_SERVE_MODEL_ADDRESSES.",
            )


async def _resolve(host: str, port: int) -> tuple[Address, ...]:
    try:
        with anyio.fail_after(_LOOK_UP_SECONDS):
            return await resolve(host, port)
    except (OSError, TimeoutError):
        raise _refusal("address_not_allowed", "The model's address could not be looked up.") from None


def _network(text: str) -> Any:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _refusal(code: str, detail: str) -> Refused:
    return Refused(422, code, detail)
