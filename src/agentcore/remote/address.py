"""The address of a server and the key for it, checked before anything is sent there."""

from __future__ import annotations

import ipaddress
import os
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

KEY_VARIABLE: Final = "AGENTCORE_SERVER_KEY"
"""The environment variable with the key for a server, where a program passes none."""


def parse_address(url: str, *, insecure: bool = False) -> str:
    """Return a server's address, without a slash at its end.

    Args:
        url: Where the server is, as in "https://agents.example.org".
        insecure: Allow http:// to a machine other than this one: all, the key included, can be read on the way.

    Raises:
        ValueError: It is not the address of a server, or an unprotected one. The message does not repeat a password.
    """
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError:
        raise ValueError("The url of a server is text like https://host:port.") from None
    host = address.hostname
    if address.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise ValueError("The url of a server begins with https:// (or http:// for this machine) and names a host.")
    if address.username is not None or address.query or address.fragment:
        raise ValueError("The url of a server holds no key, query or fragment. Pass the key as api_key.")
    if address.scheme == "http" and not insecure and not is_loopback(host):
        raise ValueError(
            f"http:// to {host} would send the key unprotected. Use https://, or pass insecure=True if the network "
            "between is yours alone."
        )
    return address._replace(path=address.path.rstrip("/")).geturl()


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_key(key: str | SecretStr | None) -> SecretStr | None:
    """Return the key that was passed, else that of the environment, else None."""
    if key is None:
        key = os.environ.get(KEY_VARIABLE) or None
    return SecretStr(key) if isinstance(key, str) else key
