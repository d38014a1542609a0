"""What watches for blocking calls in all tests: it sees ours, and leaves alone what is not."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from blockbuster import BlockingError

import agentcore


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run on asyncio alone: only there is anything watched."""
    return "asyncio"


def written_in(path: str, name: str, act: Callable[[], Any]) -> Callable[[], Any]:
    """Make a function of this name that stands in this file, and does this."""
    names: dict[str, Any] = {"act": act}
    exec(compile(f"def {name}():\n    return act()\n", path, "exec"), names)
    function: Callable[[], Any] = names[name]
    return function


async def test_a_blocking_call_of_ours_is_seen() -> None:
    ours = written_in(agentcore.__file__, "ours", lambda: os.listdir("."))
    with pytest.raises(BlockingError):
        ours()


@pytest.mark.parametrize("place", [("coverage/control.py", "_should_trace"), ("coverage/collector.py", "lock_data")])
async def test_coverage_may_look_and_wait_while_ours_runs(place: tuple[str, str]) -> None:
    held = threading.Lock()
    held.acquire()

    def collect() -> None:
        os.listdir(".")
        held.acquire(timeout=0.001)

    path, name = place
    written_in(agentcore.__file__, "ours", written_in(f"/site-packages/{path}", name, collect))()
