"""Addresses that programs of others may not reach: those of this machine, of its networks and of its cloud.

Above: the proxy of a box, and the server, which checks the models that clients bring. Not here: who is allowed what.

The lists are written out, from the registries of IANA, because `ipaddress.is_global` has changed between versions of Python.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal

import anyio

Address = IPv4Address | IPv6Address
AddressKind = Literal["loopback", "private", "shared", "link-local", "metadata", "multicast", "reserved"]
"""The reason why an address is not a public one. "shared": a provider's own network (RFC 6598). "metadata": a cloud's service for its machines."""

_KINDS: Final[tuple[tuple[AddressKind, tuple[str, ...]], ...]] = (
    # First, because most of them are in a network of another kind too. Azure's is in none.
    ("metadata", ("169.254.169.254/32", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::/32")),
    ("loopback", ("127.0.0.0/8", "::1/128")),
    ("private", ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")),
    ("shared", ("100.64.0.0/10",)),
    ("link-local", ("169.254.0.0/16", "fe80::/10")),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    (
        "reserved",
        (
            "0.0.0.0/8",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "240.0.0.0/4",
            # Teredo and 6to4 carry an IPv4 address, which nobody has to reach in these ways any more.
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
        ),
    ),
)
_NETWORKS: Final[tuple[tuple[AddressKind, IPv4Network | IPv6Network], ...]] = tuple(
    (kind, ip_network(text)) for kind, texts in _KINDS for text in texts
)
_PUBLIC_IPV6: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def canonical(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one stands for: mapped, or translated by NAT64. Else the address itself.

    Where there is only IPv6, every IPv4 address is reached by NAT64, so that this form alone says nothing.
    """
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(address.packed[-4:])
    return address


def private_kind(address: Address) -> AddressKind | None:
    """Return why an address is not a public one, or None if it is."""
    found = canonical(address)
    for kind, network in _NETWORKS:
        if found.version == network.version and found in network:
            return kind
    # The rest of IPv6 is not in use, or has a meaning of its own, as NAT64 inside of one network.
    return "reserved" if isinstance(found, IPv6Address) and found not in _PUBLIC_IPV6 else None


def parse_address(text: str) -> Address | None:
    """Return the address that a text is, in brackets or not; None if it is not one. Scopes of interfaces are left out."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return ip_address(inner.partition("%")[0])
    except ValueError:
        return None


async def resolve(host: str, port: int) -> tuple[Address, ...]:
    """Look up a name.

    Raises:
        OSError: It cannot be looked up, or has no address.
    """
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError("it is not a host name") from error
    addresses = tuple(address for each in found if (address := parse_address(str(each[4][0]))) is not None)
    if not addresses:
        raise OSError("it has no address")
    return tuple(dict.fromkeys(addresses))
