"""The secrets of a conversation: names, values and their sources."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn, cast, final

import anyio
from anyio import CapacityLimiter, to_thread

from agentcore.errors import SecretError
from agentcore.secrets.masker import Masker, StreamMasker

SecretSource = str | Callable[[], str] | Callable[[], Awaitable[str]]
"""A value, or a function that gives it: async, or sync and then run in a worker thread."""

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


@final
class SecretRegistry:
    """The secrets of one conversation, by name.

    A value is known, and masked, from when it was registered, or for a function from when it first gave it. A value
    that was replaced stays masked. History that was written before stays as it is.
    """

    def __init__(
        self,
        secrets: Mapping[str, SecretSource] | None = None,
        *,
        retry_after: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with these secrets; a function that failed is not called again for `retry_after` seconds."""
        self._retry_after = retry_after
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._known: dict[tuple[str, str], None] = {}
        self._masker = Masker()
        self._threads: CapacityLimiter | None = None
        for name, source in (secrets or {}).items():
            self.register(name, source)

    def __repr__(self) -> str:
        return f"SecretRegistry(names={self.names!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A registry holds the values of secrets: it can't be copied or pickled.")

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are registered, in the order in which they were."""
        return tuple(self._entries)

    @property
    def masker(self) -> Masker:
        """The masker of all values known now. Read it anew for each use: the next value makes another one."""
        return self._masker

    def mask(self, text: str) -> str:
        """Return a text that is complete with every value that is known now masked."""
        return self._masker.mask_text(text)

    def unfinished(self, text: str) -> int:
        """Return how many characters at the end of a text may belong to a value that goes on in what follows."""
        return self._masker.unfinished(text)

    def stream(self) -> StreamMasker:
        """Start on a text that arrives in pieces; values that become known meanwhile are masked from then on."""
        return Masker.follow(lambda: self._masker)

    def register(self, name: str, source: SecretSource, *, max_age: float | None = None) -> None:
        """Make a secret known, or give a known one another source.

        A function is called when the value is first needed, and again once that value is `max_age` seconds old.

        Raises:
            SecretError: the name can't be one, or the value can't be masked; the reason is told, the value is not.
        """
        if not _NAME.fullmatch(name):
            raise SecretError(f"{name!r} can't name a secret: use letters, digits and '_', no digit first.")
        entry = _Entry(name, source, max_age)
        if isinstance(source, str):
            entry.value = self._accepted(name, source)
        elif not callable(source):
            raise SecretError(
                f"Secret {name!r} was given as {_type_name(source)}: pass the value as text, or a function that gives it."
            )
        self._entries[name] = entry

    def hide(self, name: str, value: str) -> None:
        """Mask a value from now on, without making it one that can be had by its name.

        Raises:
            SecretError: as `register`.
        """
        if not _NAME.fullmatch(name):
            raise SecretError(f"{name!r} can't name a secret: use letters, digits and '_', no digit first.")
        self._accepted(name, value)

    async def get(self, name: str) -> str:
        """Return the value of a secret, asking its source if need be.

        Raises:
            SecretError: there is no such secret, or its source failed (the cause) or gave what can't be masked.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise SecretError(
                f"No secret {name!r} is registered. Registered: {', '.join(map(repr, self._entries)) or 'none'}."
            )
        if entry.fresh_value(self._clock()) is None:
            async with entry.asking:  # one asks, the others wait for its answer
                if entry.fresh_value(self._clock()) is None:
                    await self._ask(entry)
        assert entry.value is not None
        return entry.value

    async def _ask(self, entry: _Entry) -> None:
        wait = entry.failed_at + self._retry_after - self._clock()
        if entry.failure is not None and wait > 0:
            raise SecretError(f"{entry.failure} Its source is asked again in {wait:.0f} s at the earliest.")
        entry.failure = None
        try:
            entry.value = self._accepted(entry.name, await self._call(cast("Callable[[], Any]", entry.source)))
            entry.known_at = self._clock()
        except SecretError as error:
            entry.fail(str(error), self._clock())
            raise
        except Exception as error:
            # Its text may quote what it was given; it is the cause, and this text goes further than causes do.
            entry.fail(f"Secret {entry.name!r} can't be had: its source raised {_type_name(error)}.", self._clock())
            raise SecretError(entry.failure) from error

    async def _call(self, source: Callable[[], Any]) -> Any:
        if inspect.iscoroutinefunction(source) or inspect.iscoroutinefunction(type(source).__call__):
            return await source()
        if self._threads is None:
            # Not the default limiter: tools that fill it may be waiting for this very value.
            self._threads = CapacityLimiter(4)
        # In a tuple, because trio takes a thread that gives a coroutine (a lambda that calls an async function) for a bug.
        (value,) = await to_thread.run_sync(lambda: (source(),), limiter=self._threads, abandon_on_cancel=True)
        return await value if inspect.isawaitable(value) else value

    def _accepted(self, name: str, value: object) -> str:
        if not isinstance(value, str):
            raise SecretError(f"The source of secret {name!r} gave {_type_name(value)} instead of text.")
        if (name, value) not in self._known:
            # The newest first: where two names have one value, its mask is the newer one's.
            known = {(name, value): None, **self._known}
            self._masker = Masker(known)
            self._known = known
        return value


@final
class _Entry:
    """One registration of a name. Its repr is the plain one of a class, which shows no value."""

    __slots__ = ("asking", "failed_at", "failure", "known_at", "max_age", "name", "source", "value")

    def __init__(self, name: str, source: SecretSource, max_age: float | None) -> None:
        self.name = name
        self.source = source
        self.max_age = max_age
        self.value: str | None = None
        self.known_at = 0.0
        self.failure: str | None = None
        self.failed_at = 0.0
        self.asking = anyio.Lock()

    def fresh_value(self, now: float) -> str | None:
        if self.value is None or isinstance(self.source, str) or self.max_age is None:
            return self.value
        return self.value if now - self.known_at < self.max_age else None

    def fail(self, failure: str, now: float) -> None:
        self.failure = failure
        self.failed_at = now


def _type_name(value: object) -> str:
    return type(value).__name__
