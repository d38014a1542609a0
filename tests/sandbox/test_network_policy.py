"""`Allow`: the hosts that it matches, those that it refuses to name, and its record."""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore_sandbox.network.policy import (
    Allow,
    check_policy,
    loosenings,
    normalize_host,
    parse_policy,
    record_policy,
    restore_policy,
)


def test_a_name_allows_itself_at_the_default_ports_and_nothing_else() -> None:
    allow = Allow("example.com")
    assert allow.permits("example.com", 443)
    assert allow.permits("example.com", 80)
    assert not allow.permits("example.com", 22)
    for other in ("files.example.com", "evilexample.com", "example.com.evil.net", "com"):
        assert not allow.permits(other, 443)


def test_a_star_allows_the_names_below_and_not_the_domain_itself() -> None:
    allow = Allow("*.example.org")
    assert allow.permits("a.example.org", 443)
    assert allow.permits("a.b.example.org", 443)
    assert not allow.permits("example.org", 443)
    assert not allow.permits("badexample.org", 443)


def test_a_port_of_its_own_replaces_the_others() -> None:
    allow = Allow("example.org:8443", "example.com", ports=[8080])
    assert allow.permits("example.org", 8443)
    assert not allow.permits("example.org", 443)
    assert not allow.permits("example.org", 8080)
    assert allow.permits("example.com", 8080)
    assert not allow.permits("example.com", 443)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Example.com", "example.com"),
        ("example.com.", "example.com"),
        ("straße.example", "xn--strae-oqa.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("\uff45xample\uff0ecom", "example.com"),
        ("[2001:DB8::0:1]", "2001:db8::1"),
        ("::ffff:8.8.8.8", "8.8.8.8"),
        ("_dmarc.example.org", "_dmarc.example.org"),
    ],
)
def test_hosts_are_compared_in_one_form(text: str, normal: str) -> None:
    assert normalize_host(text) == normal
    assert normalize_host(normal) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a..b",
        "a b",
        "a\r\nb",
        "a\0b",
        "-a.org",
        "a-.org",
        "a/b",
        "a@b",
        "a%2eb",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        *(
            "017700000001",
            "1.2.3.4.5",
            "a.0x",
            "fe80::1%eth0",
            "a" * 64,
            "a." * 200 + "org",
            "\u2028.org",
            "\ud800.org",
        ),
    ],
)
def test_what_is_not_a_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host"):
        normalize_host(text)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("*", "would allow every host"),
        ("*.*", "would allow every host"),
        ("*.org", "would allow too much"),
        ("*.192.0.2.1", "would allow too much"),
        ("a.*.org", "is not a host name"),
        ("https://example.com/simple", "is a URL"),
        ("example.com/simple", "is not a host name"),
        ("user@example.com", "is not a host name"),
        ("example.com:0", "does not end in a port"),
        ("example.com:65536", "does not end in a port"),
        ("example.com:https", "does not end in a port"),
        ("2606:4700::1111", "in brackets"),
        ("[2606:4700::1111", "in brackets"),
        ("[example.com]:443", "in brackets"),
        ("127.0.0.1:8000", "a loopback address, which no box may reach"),
        ("169.254.169.254", "a metadata address"),
        ("[fe80::1]", "a link-local address"),
        ("0.0.0.0", "a reserved address"),
        ("224.0.0.1", "a multicast address"),
        ("", "is not a host name"),
    ],
)
def test_a_host_that_would_allow_too_much_or_is_none_is_refused_with_a_sentence(host: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Allow("example.com", host)


def test_wrong_arguments_are_refused() -> None:
    wrong: Any
    for wrong in (7, None, ["example.com"]):
        with pytest.raises(TypeError, match="A host is text"):
            Allow(wrong)
    for wrong in (["443"], [True]):
        with pytest.raises(TypeError, match="whole number"):
            Allow("example.com", ports=wrong)
    for wrong in ([], [0], [65536]):
        with pytest.raises(ValueError, match="Ports are numbers"):
            Allow("example.com", ports=wrong)
    with pytest.raises(ValueError, match="names no host"):
        Allow()


def test_an_address_is_allowed_only_by_its_own_name_and_a_private_one_then_too() -> None:
    allow = Allow("example.com", "10.1.2.3:3141", "[2606:4700::1111]")
    assert allow.permits("10.1.2.3", 3141)
    assert allow.permits("2606:4700::1111", 443)
    assert not allow.permits("10.1.2.3", 443)
    assert not allow.permits("8.8.8.8", 443)
    # The addresses of names: public, or named.
    assert allow.permits_address(ip_address("8.8.8.8"), 443)
    assert allow.permits_address(ip_address("10.1.2.3"), 3141)
    assert not allow.permits_address(ip_address("10.1.2.3"), 443)
    assert not allow.permits_address(ip_address("10.1.2.4"), 3141)
    assert not allow.permits_address(ip_address("127.0.0.1"), 443)
    assert loosenings(allow) == ("Commands reach 10.1.2.3:3141, which is on a private network.",)
    assert loosenings(Allow("example.com", "*.example.org")) == ()
    assert loosenings("none") == ()
    assert loosenings("full") == ("Commands reach every network that this machine does.",)


@pytest.mark.parametrize(
    "policy", ["none", "full", Allow("Example.com", "*.example.org:8443", "[2606:4700::1111]", ports=(80,))]
)
def test_a_policy_is_recorded_as_json_and_read_back(policy: Any) -> None:
    restored = restore_policy(json.loads(json.dumps(record_policy(policy))))
    assert restored == policy
    assert hash(restored) == hash(policy)


RECORDS: list[Any] = [
    "host",
    None,
    1,
    [],
    {},
    {"hosts": ["example.com"]},
    {"hosts": "example.com", "ports": [1]},
    {"hosts": [1], "ports": [1]},
    {"hosts": ["*"], "ports": [443]},
    {"hosts": ["example.com"], "ports": ["443"]},
    {"hosts": ["a"], "ports": [1], "x": 1},
]


@pytest.mark.parametrize("recorded", RECORDS)
def test_a_record_that_is_not_one_is_refused(recorded: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has words of its own
        restore_policy(recorded)


def test_the_argument_and_the_option_name_policies() -> None:
    assert check_policy(Allow("example.com")) == parse_policy("example.com") == Allow("example.com")
    assert parse_policy("example.com, *.example.org,") == Allow("example.com", "*.example.org")
    assert [parse_policy("none"), parse_policy("full")] == ["none", "full"]
    for wrong in ("host", "bridge", "all", "", ",", "*"):
        with pytest.raises(ValueError, match=r"--network is none, full|every host"):
            parse_policy(wrong)
    for other in ("host", True, None, ["example.com"]):
        with pytest.raises(ValueError, match='network is "none", "full" or Allow'):
            check_policy(other)


def test_a_policy_shows_what_it_allows() -> None:
    assert repr(Allow("example.com", "*.B.org:8443")) == "Allow('example.com', '*.b.org:8443')"
    assert repr(Allow("example.com", ports=[80])) == "Allow('example.com', ports=(80,))"
    assert str(Allow("example.com", "[2606:4700::1111]:443")) == "example.com, [2606:4700::1111]:443"
    assert Allow("example.com") != "none"


@given(st.text(max_size=80))
def test_any_text_is_a_host_or_refused(text: str) -> None:
    try:
        host = normalize_host(text)
    except ValueError:
        return
    assert host.isascii()
    assert normalize_host(host) == host
