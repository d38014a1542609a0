"""What has to hold of every way in which requests are sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", params=["asyncio", "asyncio with httpx", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run every async test on both event loops, on asyncio with aiohttp and without."""
    backend, _, http = request.param.partition(" with ")
    with pytest.MonkeyPatch.context() as patched:
        if http:
            patched.setenv("AGENTCORE_HTTP", http)
        yield backend
