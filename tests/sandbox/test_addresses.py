"""The addresses that a box may not reach, in each of their forms."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore_sandbox.network.addresses import canonical, parse_address, private_kind, resolve


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fd12:3456::1", "private"),
        ("fec0::1", "private"),
        ("100.64.0.1", "shared"),
        ("100.127.255.255", "shared"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("168.63.129.16", "metadata"),
        ("100.100.100.200", "metadata"),
        ("192.0.0.192", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("0.0.0.0", "reserved"),
        ("0.1.2.3", "reserved"),
        ("192.0.0.8", "reserved"),
        ("192.0.2.1", "reserved"),
        ("198.18.0.1", "reserved"),
        ("198.51.100.1", "reserved"),
        ("203.0.113.1", "reserved"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("::", "reserved"),
        ("::7f00:1", "reserved"),  # IPv4 in a form that is long gone
        ("2001:db8::1", "reserved"),
        ("2001::1", "reserved"),  # Teredo
        ("2002:7f00:1::", "reserved"),  # 6to4, of 127.0.0.1
        ("2002:808:808::", "reserved"),
        ("64:ff9b:1::808:808", "reserved"),  # NAT64 inside of one network
        ("100::1", "reserved"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "metadata"),
        ("64:ff9b::10.0.0.1", "private"),
        ("64:ff9b::a9fe:a9fe", "metadata"),
        ("::ffff:0:127.0.0.1", "reserved"),  # translated by SIIT
        ("8.8.8.8", None),
        ("172.32.0.1", None),
        ("100.128.0.1", None),
        ("2606:4700::1111", None),
        ("::ffff:8.8.8.8", None),
        ("64:ff9b::808:808", None),
    ],
)
def test_each_kind_of_address_is_known(address: str, kind: str | None) -> None:
    assert private_kind(ip_address(address)) == kind


@given(st.ip_addresses())
def test_an_address_that_is_not_global_is_never_public(address: IPv4Address | IPv6Address) -> None:
    if private_kind(address) is None:
        assert canonical(address).is_global
        assert not canonical(address).is_multicast


@given(st.ip_addresses(v=4))
def test_ipv4_in_ipv6_is_judged_by_the_ipv4_address(address: IPv4Address) -> None:
    assert private_kind(IPv6Address(f"::ffff:{address}")) == private_kind(address)
    assert private_kind(IPv6Address(f"64:ff9b::{address}")) == private_kind(address)


def test_texts_that_are_addresses_are_parsed() -> None:
    assert parse_address("[::1]") == ip_address("::1")
    assert parse_address("fe80::1%eth0") == ip_address("fe80::1")
    assert [
        parse_address(text) for text in ("example.com", "2130706433", "0x7f.1", "127.1", "010.0.0.1", "", "[", "[]")
    ] == [None] * 8


async def test_names_are_looked_up_and_each_address_is_there_once() -> None:
    found = await resolve("localhost", 80)
    assert ip_address("127.0.0.1") in found
    assert len(found) == len(set(found))
    with pytest.raises(OSError):  # noqa: PT011 - the resolver's own words
        await resolve("a" * 64 + ".invalid", 80)
