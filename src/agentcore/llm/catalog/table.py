"""The table of models that is shipped: read once per process, in a thread, and looked up by name."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time, timedelta
from decimal import Decimal
from importlib.resources import files
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from agentcore.llm.catalog.info import ModelInfo, Prices, QuietHours, Rates
from agentcore.llm.features import Features

__all__ = ["ABILITIES", "FILE", "Table", "parse", "table", "table_nowait"]

FILE = "models.json"
ABILITIES = ("vision", "pdf", "tool_calls", "reasoning", "prompt_caching", "response_schema")
"""The features that a row of the table lists under "can" and "can't"."""

_reading = threading.Lock()
_read: Table | None = None
_turn: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("agentcore.llm.catalog.turn")


@dataclass(frozen=True, slots=True)
class Table:
    """All models that are known."""

    source: str
    """Where the facts come from, as in "litellm 1.106.2"."""
    date: str
    """The day on which they were taken from there."""
    rows: Mapping[str, Mapping[str, Any]]
    """By litellm's name of the model."""

    def provider(self, name: str) -> str | None:
        """Say who sells what has that name, in litellm's words; None where nobody does."""
        row = self.rows.get(name)
        return None if row is None else row["by"]

    def info(self, name: str) -> ModelInfo:
        """Give what is known of a model of the table."""
        row = self.rows[name]
        return ModelInfo(_features(row), _prices(row))


async def table() -> Table:
    """Give the table; from the second time on without waiting."""
    if _read is not None:
        return _read
    # One thread reads; a thousand conversations that start at once wait for it here and not in threads.
    limiter = _turn.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(1)
        _turn.set(limiter)
    return await anyio.to_thread.run_sync(_load, abandon_on_cancel=True, limiter=limiter)


def table_nowait() -> Table | None:
    """Return the table, if it was read already."""
    return _read


def _load() -> Table:
    global _read  # noqa: PLW0603 - the table is read once per process
    with _reading:
        if _read is None:
            _read = parse(files("agentcore.llm.catalog").joinpath(FILE).read_text(encoding="utf-8"))
    return _read


def parse(text: str) -> Table:
    """Read a table."""
    written: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return Table(written["source"], written["date"], written["models"])


def _features(row: Mapping[str, Any]) -> Features:
    known: dict[str, Any] = dict.fromkeys(row.get("can", "").split(), True)
    known |= dict.fromkeys(row.get("cannot", "").split(), False)
    known |= {"context_window": row.get("reads"), "max_output_tokens": row.get("writes")}
    # Not checked here: the table was when it was made.
    return Features.model_construct(mode=row.get("mode", "chat"), **known)


def _prices(row: Mapping[str, Any]) -> Prices | None:
    base: dict[str, Any] | None = row.get("dollars")
    if base is None:
        return None
    above: dict[str, dict[str, Any]] = row.get("above", {})
    tiers = sorted(((int(limit), _rates(base | changed)) for limit, changed in above.items()), reverse=True, key=_limit)
    quiet: dict[str, Any] | None = row.get("off_peak")
    return Prices(base=_rates(base), above=tuple(tiers), quiet=None if quiet is None else _quiet_hours(quiet, base))


def _limit(tier: tuple[int, Rates]) -> int:
    return tier[0]


def _rates(dollars: Mapping[str, Any]) -> Rates:
    def rate(name: str, otherwise: str) -> Decimal:
        """Dollars per million as dollars per token."""
        return Decimal(dollars.get(name, dollars[otherwise])).scaleb(-6)

    return Rates(
        input=rate("input", "input"),
        output=rate("output", "output"),
        cache_read=rate("cache_read", "input"),
        cache_write=rate("cache_write", "input"),
        reasoning=rate("reasoning", "output"),
    )


def _quiet_hours(quiet: Mapping[str, Any], base: Mapping[str, Any]) -> QuietHours:
    hours: dict[str, list[str]] = quiet["hours"]
    return QuietHours(
        rates=_rates({**base, **quiet["dollars"]}),
        windows=tuple((frozenset(map(int, days)), *_window(text)) for days, texts in hours.items() for text in texts),
        days_ahead=timedelta(hours=quiet.get("days_ahead", 0)),
    )


def _window(text: str) -> tuple[time, time]:
    begin, _, end = text.partition("-")
    return time.fromisoformat(begin), time.fromisoformat(end)
