"""Losing the power at every point where that makes a difference.

async def test_what_was_acknowledged_is_found(tmp_path) -> None:
    for attempt in crash_everywhere(tmp_path):
        acknowledged = []
        found = await attempt(work, acknowledged)      # calls work(store, acknowledged)
        assert_all_there(found.store, acknowledged)
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

import anyio.to_thread

from agentcore.record import Durability, FileStore
from agentcore.testing.crashing_disk import CrashingDisk, Survival

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Crash:
    """The state found after the power was lost."""

    happened: bool
    """True if it was lost before the function was done. If not, it was lost just after."""
    folder: str
    """The store's folder, as it is found."""
    operations: int
    """How many disk operations were begun."""
    error: Exception | None
    """The exception of the function once it had no disk, or None."""

    @property
    def store(self) -> FileStore:
        """A store on what is found."""
        return FileStore(self.folder)


async def crash_at(
    n: int,
    function: Callable[[FileStore], Awaitable[object]],
    folder: str | os.PathLike[str],
    *,
    kept: Survival = "least",
    durability: Durability = "sync",
) -> Crash:
    """Run an async function with a file store, lose the power during its n-th disk operation, and give what is found.

    From then on every operation of that disk fails, so that the store raises `StoreError`: what the function does without
    a store, it does in vain, and what it raises is kept in `Crash.error`. What it raises before, is raised here.

    Operations are counted as `CrashingDisk` does, from 1: what writes, names or syncs. In a conversation several tasks
    write, yet one at a time, so that the same n is nearly always the same place.

    Args:
        n: Which operation.
        function: Called once, with the store.
        folder: Where to work: the store is in `before-<n>`, what is found in `after-<n>`, which are made.
        kept: What is left of that which was not synced.
        durability: The store's.
    """
    before, after = (os.path.join(folder, f"{name}-{n}") for name in ("before", "after"))
    disk = await anyio.to_thread.run_sync(_make_disk, before, n)
    error: Exception | None = None
    try:
        await function(FileStore(before, durability=durability, disk=disk))
    except Exception as raised:
        if disk.power:
            raise
        error = raised
    happened = not disk.power
    disk.lose_power()
    await anyio.to_thread.run_sync(lambda: disk.restore(after, kept=kept))
    return Crash(happened=happened, folder=after, operations=disk.operations, error=error)


def _make_disk(folder: str, n: int) -> CrashingDisk:
    os.makedirs(folder)
    return CrashingDisk(folder, lose_power_at=n)


class CrashAttempt:
    """One attempt of `crash_everywhere`: call it with the function, and what follows the store in its arguments."""

    def __init__(self, n: int, folder: str, kept: Survival, durability: Durability) -> None:
        self.n = n
        """The operation at which the power is lost."""
        self.found: Crash | None = None
        """The state found; None before the attempt was made."""
        self._folder = folder
        self._kept: Survival = kept
        self._durability: Durability = durability

    def __repr__(self) -> str:
        return f"CrashAttempt(n={self.n}, found={self.found})"

    async def __call__(
        self, function: Callable[Concatenate[FileStore, P], Awaitable[object]], *args: P.args, **kwargs: P.kwargs
    ) -> Crash:
        """Run the function as `crash_at` does, with the store and these arguments."""

        async def call(store: FileStore) -> None:
            await function(store, *args, **kwargs)

        self.found = await crash_at(self.n, call, self._folder, kept=self._kept, durability=self._durability)
        return self.found


def crash_everywhere(
    folder: str | os.PathLike[str], *, kept: Survival = "least", durability: Durability = "sync", most: int = 10_000
) -> Iterator[CrashAttempt]:
    """Go through attempts that lose the power at operation 1, 2, 3, ..., up to the first that is done before.

    The body of the loop awaits the attempt once, and checks what is found. The last time, the power is lost when the
    function has ended.

    Args:
        folder: Where to work; see `crash_at`.
        kept: What is left of that which was not synced; with a `Random`, each attempt has another outcome.
        durability: The store's.
        most: Give up after so many operations.

    Raises:
        RuntimeError: the body did not await the attempt, or a function is not done after `most` operations.
    """
    for n in range(1, most + 1):
        attempt = CrashAttempt(n, os.fspath(folder), kept, durability)
        yield attempt
        if attempt.found is None:
            raise RuntimeError(f"Attempt {n} was not made: await it in the body of the loop, with what is to be run.")
        if not attempt.found.happened:
            return
    raise RuntimeError(f"It still was not done at operation {most}. Give a higher `most`, if that is to be expected.")
