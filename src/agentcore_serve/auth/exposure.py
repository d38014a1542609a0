"""Where a server may listen: keys and TLS, unless nobody but this machine reaches it."""

from __future__ import annotations

import ipaddress

from agentcore_serve.settings import ServeSettings


class ExposureError(ValueError):
    """A server would be open to others in a way that these settings do not protect. The text names the option to change."""


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach this host."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Return whether this host stands for all addresses of the machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return not host


def check_exposure(settings: ServeSettings) -> None:
    """Check that the server can be open where these settings put it.

    Raises:
        ExposureError: It cannot.
    """
    is_local = settings.unix is not None or is_loopback(settings.host)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        missing = "--tls-key" if settings.tls_key is None else "--tls-cert"
        raise ExposureError(f"TLS needs both a certificate and its key: pass {missing} too.")
    if not settings.auth and settings.behind_proxy:
        raise ExposureError(
            "Without keys, everybody whom the proxy lets through could run commands here. Leave out --no-auth or --behind-proxy."
        )
    if not settings.auth and not is_local:
        raise ExposureError(
            f"Without keys, everybody who reaches {settings.host} could run commands here. Leave out --no-auth, or listen "
            "on 127.0.0.1."
        )
    if settings.behind_proxy and not settings.allowed_hosts:
        raise ExposureError(
            "Behind a proxy, the public name of the server has to be known, so that other names can be refused. "
            "Pass --allowed-host agents.example.com."
        )
    if not is_local and settings.tls_cert is None and not settings.behind_proxy:
        raise ExposureError(
            f"Keys would travel to {settings.host} in plain text. Pass --tls-cert and --tls-key; or --behind-proxy, if a "
            "proxy that ends TLS is the only one that reaches this address; or listen on 127.0.0.1."
        )
