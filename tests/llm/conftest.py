"""On every commit the models are tested on asyncio, and all that sends requests on both loops (`native/http`)."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="module", params=["asyncio", "trio"] if os.environ.get("EVERY_EVENT_LOOP") else ["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on asyncio, and with EVERY_EVENT_LOOP set, as in nox, on trio as well."""
    backend: str = request.param
    return backend
