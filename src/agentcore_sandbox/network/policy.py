"""The hosts that commands in a box may reach: `Allow`, or "none" or "full".

Above: the workspaces, which take it as `network=`. Below: nothing. Names are compared here; the addresses that they
resolve to are the proxy's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, cast, final

import idna
from pydantic import JsonValue

from agentcore_sandbox.network.addresses import Address, canonical, parse_address, private_kind

DEFAULT_PORTS: Final = (443, 80)

_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# What the C library reads as an address in one of its old forms: 2130706433, 0x7f.1, 127.1.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LONGEST_NAME: Final = 253
_LONGEST_SHOWN: Final = 80
_HIGHEST_PORT: Final = 65535
# A network that the user owns may be named, address by address. The others lead to this machine, its cloud, or nowhere.
_MAY_BE_NAMED: Final = frozenset({None, "private", "shared"})


def normalize_host(text: str) -> str:
    """Return a host in the form in which hosts are compared: lower case, in ASCII, without a dot at its end; addresses in their short form.

    Raises:
        ValueError: It is not the name or the address of a host.
    """
    if (address := parse_address(text)) is not None and "%" not in text:
        return str(canonical(address))
    name = text.removesuffix(".")
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode()
        except (idna.IDNAError, UnicodeError):
            raise ValueError(f"{_shorten(text)} is not a host name.") from None
    name = name.lower()
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{_shorten(text)} is not a host name.")
    if _NUMBER.fullmatch(labels[-1]):
        raise ValueError(f"{_shorten(text)} is a number and not a host name; write addresses as in 192.0.2.1.")
    return name


def split_authority(text: str) -> tuple[str, int | None]:
    """Split "host", "host:port" or "[address]:port" into the host, in its compared form, and the port.

    Raises:
        ValueError: It is not that.
    """
    host, port = text, None
    if text.startswith("["):
        host, closed, rest = text.partition("]")
        if not closed or (rest and not rest.startswith(":")) or parse_address(host[1:]) is None:
            raise ValueError(f"{_shorten(text)} is not an address in brackets.")
        host, port = host[1:], rest[1:] if rest else None
    elif ":" in text:
        if parse_address(text) is not None:
            raise ValueError(f"Write an IPv6 address in brackets, as in [{text[:_LONGEST_SHOWN]}]:443.")
        host, _, port = text.rpartition(":")
    if port is None:
        return normalize_host(host), None
    if not _PORT.fullmatch(port) or not 0 < int(port) <= _HIGHEST_PORT:
        raise ValueError(f"{_shorten(text)} does not end in a port, which is a number from 1 to {_HIGHEST_PORT}.")
    return normalize_host(host), int(port)


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


class _Rule(NamedTuple):
    """One of the hosts that are allowed."""

    host: str
    below: bool
    """True for the names below the host, and not the host itself."""
    port: int | None

    def matches(self, host: str) -> bool:
        return host.endswith(f".{self.host}") if self.below else host == self.host

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'*.' if self.below else ''}{host}{'' if self.port is None else f':{self.port}'}"


def _parse_rule(text: str) -> _Rule:
    if "://" in text:
        raise ValueError(f"{_shorten(text)} is a URL. Name its host alone, as in 'example.com' or 'example.com:8443'.")
    if text.strip() in ("*", "*.*"):
        raise ValueError(f'{_shorten(text)} would allow every host. Name the hosts, or pass network="full".')
    below = text.startswith("*.")
    host, port = split_authority(text[2:] if below else text)
    address = parse_address(host)
    if below and (address is not None or "." not in host):
        raise ValueError(
            f"{_shorten(text)} would allow too much. Name a domain of two parts at least: '*.example.org'."
        )
    if address is not None and (kind := private_kind(address)) not in _MAY_BE_NAMED:
        raise ValueError(f"{_shorten(text)} is a {kind} address, which no box may reach.")
    return _Rule(host, below, port)


@final
class Allow:
    """Let commands in a box reach these hosts, and no others.

    They are reached through a proxy (`HTTP_PROXY`, `HTTPS_PROXY`), over HTTP and whatever goes through its CONNECT, as TLS does.
    A name is resolved outside of the box, and may not lead to a private address, unless that address is among the hosts too.

    Args:
        hosts: Names as "example.com"; "*.example.org" for all names below example.org, without itself; with a port of their
            own, as "example.org:8443"; addresses as "192.0.2.1" or "[2001:db8::1]:443".
        ports: The ports of the hosts that name none.

    Raises:
        ValueError: One of them is not a host, or would allow too much; the message says which.
        TypeError: One of them is not text, or not a whole number.
    """

    __slots__ = ("_ports", "_rules")

    def __init__(self, *hosts: str, ports: Iterable[int] = DEFAULT_PORTS) -> None:
        for host in cast("tuple[object, ...]", hosts):
            if not isinstance(host, str):
                raise TypeError(f"A host is text, as in Allow('example.com', '*.example.org'), and not {host!r:.80}.")
        if not hosts:
            raise ValueError('Allow() names no host. Pass some, or network="none".')
        numbers = tuple(ports)
        for port in cast("tuple[object, ...]", numbers):
            if not isinstance(port, int) or isinstance(port, bool):
                raise TypeError(f"A port is a whole number, and not {port!r:.80}.")
        if not numbers or not all(0 < port <= _HIGHEST_PORT for port in numbers):
            raise ValueError(f"Ports are numbers from 1 to {_HIGHEST_PORT}, and at least one is needed.")
        self._rules = tuple(dict.fromkeys(_parse_rule(host) for host in hosts))
        self._ports = tuple(dict.fromkeys(numbers))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts, each in the form in which it is compared."""
        return tuple(str(rule) for rule in self._rules)

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of the hosts that name none."""
        return self._ports

    def permits(self, host: str, port: int) -> bool:
        """Return whether a host, as `normalize_host` returns it, may be reached at a port."""
        return any(rule.matches(host) and self._fits(rule, port) for rule in self._rules)

    def permits_address(self, address: Address, port: int) -> bool:
        """Return whether an address may be reached at a port: a public one, or one that is named."""
        return private_kind(address) is None or self.permits(str(canonical(address)), port)

    def _fits(self, rule: _Rule, port: int) -> bool:
        return port == rule.port if rule.port is not None else port in self._ports

    def __str__(self) -> str:
        return ", ".join(self.hosts)

    def __repr__(self) -> str:
        ports = "" if self._ports == DEFAULT_PORTS else f", ports={self._ports}"
        return f"Allow({', '.join(map(repr, self.hosts))}{ports})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Allow) and (self._rules, self._ports) == (other._rules, other._ports)

    def __hash__(self) -> int:
        return hash((self._rules, self._ports))


NetworkPolicy = Literal["none", "full"] | Allow
"""The reach of commands in a box: nothing, the hosts of an `Allow`, or whatever this machine can."""


def check_policy(network: object) -> NetworkPolicy:
    """Return the argument `network=` of a workspace.

    Raises:
        ValueError: It is not a policy.
    """
    if isinstance(network, Allow):
        return network
    if network == "none":
        return "none"
    if network == "full":
        return "full"
    raise ValueError(f'network is "none", "full" or Allow("example.com", ...), and not {network!r:.80}.')


def record_policy(network: NetworkPolicy) -> JsonValue:
    """Return a policy as JSON, for the record of a box."""
    return {"hosts": [*network.hosts], "ports": [*network.ports]} if isinstance(network, Allow) else network


def restore_policy(recorded: JsonValue) -> NetworkPolicy:
    """Return the policy that `record_policy` recorded.

    Raises:
        ValueError: It is not one.
    """
    if not isinstance(recorded, Mapping):
        return check_policy(recorded)
    values = cast("dict[str, Any]", recorded)
    if values.keys() != {"hosts", "ports"} or not all(isinstance(each, list) for each in values.values()):
        raise ValueError("The record of a network policy has hosts and ports, and nothing else.")
    try:
        return Allow(*values["hosts"], ports=values["ports"])
    except TypeError as error:
        raise ValueError(str(error)) from None


def parse_policy(text: str) -> NetworkPolicy:
    """Return the policy that the command line names: none, full, or hosts with commas between them.

    Raises:
        ValueError: It is not one; the message says what to write.
    """
    if text in ("none", "full"):
        return check_policy(text)
    hosts = [host.strip() for host in text.split(",") if host.strip()]
    # "host" and "bridge" are networks elsewhere, and would be names of hosts here.
    if not hosts or (len(hosts) == 1 and not set(hosts[0]) & set(".:*")):
        raise ValueError(
            f"--network is none, full, or hosts as in example.com,*.example.org, and not {_shorten(text)}."
        )
    return Allow(*hosts)


def loosenings(network: NetworkPolicy) -> tuple[str, ...]:
    """Return one sentence for each protection that a policy gives up, for `BoxSpec.loosened`."""
    if network == "full":
        return ("Commands reach every network that this machine does.",)
    if isinstance(network, Allow):
        named = [host for host in network.hosts if _is_private(host)]
        return tuple(f"Commands reach {host}, which is on a private network." for host in named)
    return ()


def _is_private(host: str) -> bool:
    address = parse_address(split_authority(host)[0]) if not host.startswith("*.") else None
    return address is not None and private_kind(address) is not None
