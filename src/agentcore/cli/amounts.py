"""Tokens, money and time, as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from agentcore.usage import Usage

__all__ = ["age", "cost", "count", "duration", "spent"]


def count(number: int, what: str) -> str:
    """Give a number and its noun: "1 step", "2 steps"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def cost(usage: Usage) -> str:
    """Give what it cost, or what is known of that."""
    if not usage.unpriced_requests:
        return _dollars(usage.known_cost)
    return f"over {_dollars(usage.known_cost)}" if usage.known_cost else "cost unknown"


def _dollars(amount: Decimal) -> str:
    if not amount:
        return "$0"
    return f"${amount:.2f}" if amount >= 1 else f"${amount:.4f}" if amount >= Decimal("0.0001") else "under $0.0001"


def spent(usage: Usage) -> str:
    """Give tokens and cost."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    return f"{usage.input_tokens:,} tokens read{cached}, {usage.output_tokens:,} written, {cost(usage)}"


def duration(seconds: float) -> str:
    """Give a length of time: "0.4 s", "12 s", "3 min 5 s", "2 h 10 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def age(moment: datetime, now: datetime | None = None) -> str:
    """Say how long ago that was, in its largest unit."""
    seconds = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"
