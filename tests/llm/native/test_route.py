"""Real calls over plain HTTP to a server on the loopback."""

from __future__ import annotations

from media_route import MediaContract
from model_route import RouteContract


class TestNative(RouteContract):
    route = "native"


class TestNativeMedia(MediaContract):
    route = "native"
