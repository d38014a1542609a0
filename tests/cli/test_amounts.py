from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from agentcore.cli.text import age, cost, count, duration, spent
from agentcore.usage import Usage


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(requests=1), "$0"),
        (Usage(requests=1, known_cost=Decimal("0.00001")), "under $0.0001"),
        (Usage(requests=1, known_cost=Decimal("0.0123")), "$0.0123"),
        (Usage(requests=1, known_cost=Decimal("12.346")), "$12.35"),
        (Usage(requests=2, unpriced_requests=2), "cost unknown"),
        (Usage(requests=2, unpriced_requests=1, known_cost=Decimal("0.5")), "over $0.5000"),
    ],
)
def test_a_cost_is_said_as_far_as_it_is_known(usage: Usage, said: str) -> None:
    assert cost(usage) == said


def test_tokens_are_said_with_what_was_cached() -> None:
    usage = Usage(requests=1, input_tokens=12_345, cache_read_tokens=10_000, output_tokens=67)
    assert spent(usage) == "12,345 tokens read (10,000 cached), 67 written, $0"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (59, "59 s"), (61, "1 min 1 s"), (7_800, "2 h 10 min")]
)
def test_a_duration_is_said_in_two_units_at_most(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(-5, "0 s ago"), (59, "59 s ago"), (61, "1 min ago"), (7200, "2 h ago"), (200_000, "2 d ago")]
)
def test_an_age_is_said_in_one_unit(seconds: int, said: str) -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert age(now - timedelta(seconds=seconds), now) == said


def test_a_count_has_its_noun() -> None:
    assert [count(number, "step") for number in (0, 1, 1_234)] == ["0 steps", "1 step", "1,234 steps"]
