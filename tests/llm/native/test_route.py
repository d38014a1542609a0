"""Real calls over plain HTTP to a server on the loopback."""

from __future__ import annotations

from model_route import RouteContract


class TestNative(RouteContract):
    route = "native"
