"""What the tests of boxes need of the machine."""

from __future__ import annotations

import os

import pytest

HOW = "start one with `eval \"$(scripts/docker-engine.sh up)\"` (as root, on Debian), or set DOCKER_HOST and TEST_IMAGE (with bash, git, Python)"


@pytest.fixture(scope="session")
def docker_image() -> str:
    """Return the image for tests, at the engine of `DOCKER_HOST`; skip where there is none."""
    image = os.environ.get("TEST_IMAGE")
    if not os.environ.get("DOCKER_HOST") or not image:
        pytest.skip(f"needs a Docker engine: {HOW}")
    return image
