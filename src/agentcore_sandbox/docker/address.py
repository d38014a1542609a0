"""Where the Docker engine is."""

from __future__ import annotations

import ipaddress
import os
import stat
from typing import Final
from urllib.parse import urlsplit

from agentcore_sandbox.docker.errors import EngineUnreachable

_SOCKETS: Final = ("/var/run/docker.sock", "/run/docker.sock", "~/.docker/run/docker.sock")


def find_address() -> str:
    """Return the address of the engine: `DOCKER_HOST`, else the socket that is at one of the usual places.

    Raises:
        EngineUnreachable: There is none, or it is one that cannot be used.
    """
    address = os.environ.get("DOCKER_HOST", "")
    if address:
        return check_address(address)
    for path in map(os.path.expanduser, _SOCKETS):
        try:
            if stat.S_ISSOCK(os.stat(path).st_mode):
                return f"unix://{path}"
        except OSError:
            continue
    raise EngineUnreachable(
        "No Docker engine is here: there is no /var/run/docker.sock, and DOCKER_HOST is not set. Install Docker and start it, or set"
        " DOCKER_HOST to where one listens, as in DOCKER_HOST=unix:///run/user/1000/docker.sock."
    )


def check_address(address: str) -> str:
    """Return an address that can be used, or refuse it.

    Raises:
        EngineUnreachable: It is not one of an engine on this machine.
    """
    if address.startswith("unix:///"):
        return address
    try:
        parts = urlsplit(address)
        usable = parts.scheme == "tcp" and parts.port is not None and _is_loopback(parts.hostname or "")
    except ValueError:
        usable = False
    if not usable:
        raise EngineUnreachable(
            f"DOCKER_HOST is {address!r}, and only engines on this machine can be used: write unix:///PATH/TO/docker.sock, or"
            " tcp://127.0.0.1:PORT. (An engine elsewhere does not have your folders, and without TLS anybody on the way is root there.)"
        )
    if os.environ.get("DOCKER_TLS_VERIFY", "") not in ("", "0"):
        raise EngineUnreachable("DOCKER_TLS_VERIFY is set, and TLS is not supported: use the engine's unix socket.")
    return address


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
