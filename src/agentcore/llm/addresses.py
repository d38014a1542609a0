"""Which addresses a model from a log may be reached at.

A log may come from somebody else, and the key in the environment goes to wherever a model is. So a recorded address has to
be one that somebody here named too: the provider's own, one in an environment variable, or one that the program allowed.
At an address of this machine, where servers of one's own are, a model is reached as well, but without a key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote, urlsplit

from agentcore.errors import AddressNotAllowed
from agentcore.llm.native.hosts import HOSTS

if TYPE_CHECKING:
    from agentcore.llm.llm import LLM

_PORTS: Final = {"http": 80, "https": 443}
_ADDRESSES: Final = ("base", "url", "uri", "endpoint", "host", "proxy", "domain")
"""Parts of the names of options that say where something is."""

_allowed: set[str] = set()


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
