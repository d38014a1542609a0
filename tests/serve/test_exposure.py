"""Where a server may listen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore_serve.auth.exposure import ExposureError, check_exposure
from agentcore_serve.auth.security import Security
from agentcore_serve.settings import ServeSettings

TLS = {"tls_cert": "cert.pem", "tls_key": "key.pem"}
PROXY = {"behind_proxy": True, "allowed_hosts": ("agents.example.com",)}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"host": "::1"},
        {"host": "localhost"},
        {"host": "127.0.0.2"},
        {"auth": False},
        {"unix": "/run/agentcore.sock"},
        {"unix": "/run/agentcore.sock", "auth": False},
        {"host": "0.0.0.0", **TLS},
        {"host": "192.0.2.1", **PROXY},
        {"host": "127.0.0.1", **PROXY},
        {"host": "::", **TLS, **PROXY},
    ],
)
def test_a_server_may_listen_on_loopback_and_elsewhere_behind_tls(tmp_path: Path, settings: dict[str, Any]) -> None:
    check_exposure(ServeSettings(store=tmp_path, **settings))


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"host": "0.0.0.0"}, "--tls-cert and --tls-key; or --behind-proxy"),
        ({"host": "192.0.2.1"}, "to 192.0.2.1 in plain text"),
        ({"host": "localhost.example.com"}, "--tls-cert"),
        ({"host": ""}, "--tls-cert"),
        ({"host": "::"}, "--tls-cert"),
        ({"host": "0.0.0.0", "auth": False, **TLS}, "Leave out --no-auth, or listen on 127.0.0.1"),
        ({"auth": False, **PROXY}, "Leave out --no-auth or --behind-proxy"),
        ({"behind_proxy": True}, "--allowed-host agents.example.com"),
        ({"host": "0.0.0.0", "tls_cert": "cert.pem"}, "pass --tls-key too"),
        ({"tls_key": "key.pem"}, "pass --tls-cert too"),
    ],
)
def test_a_server_that_others_reach_without_protection_does_not_start(
    tmp_path: Path, settings: dict[str, Any], advice: str
) -> None:
    with pytest.raises(ExposureError) as refused:
        Security(ServeSettings(store=tmp_path, **settings))
    assert advice in str(refused.value)
    assert not list(tmp_path.iterdir())
