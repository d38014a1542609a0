"""What tests of containers share as fixtures; the rest is in `boxes_docker`."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator

import pytest

from boxes_docker import find_image, left_behind, remove_all


@pytest.fixture(scope="module")
def docker_image() -> str:
    """Return the image for tests."""
    return find_image()


@pytest.fixture
async def owner() -> AsyncGenerator[str]:
    """Return an owner of boxes for one test; nothing of them may be left at its end."""
    owner = f"tests {os.urandom(4).hex()}"
    yield owner
    left = await left_behind(owner)
    await remove_all(owner)
    assert left == []
