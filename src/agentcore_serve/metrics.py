"""The metrics of a server, in Prometheus' text format. No label holds an id: their number has to stay small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from agentcore.usage import Usage


class Gauges(NamedTuple):
    """Numbers that are counted when they are asked for."""

    open_conversations: int
    running_conversations: int
    streams: int


@final
class Metrics:
    """Counts requests, errors and usage, in a registry of its own: a program that mounts the app keeps its own.

    Args:
        gauges: Counts what is open now.
    """

    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "agentcore_requests",
            "Requests, by route and status.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "agentcore_request_seconds", "Seconds until the answer began.", ("method", "route"), registry=self._registry
        )
        self._errors = Counter("agentcore_errors", "Answers of 500 and more.", registry=self._registry)
        self._tokens = Counter(
            "agentcore_tokens", "Tokens of all model calls.", ("direction",), registry=self._registry
        )
        self._cost = Counter("agentcore_cost_dollars", "Known cost of all model calls.", registry=self._registry)
        self._model_calls = Counter("agentcore_model_calls", "Model calls.", registry=self._registry)
        for name, about in (
            ("open_conversations", "Conversations that are open."),
            ("running_conversations", "Conversations that work."),
            ("streams", "Streams that are open."),
        ):
            gauge = Gauge(f"agentcore_{name}", about, registry=self._registry)
            gauge.set_function(lambda name=name: getattr(gauges(), name))

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered. `route` is the pattern of its path, never the path."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if status >= 500:
            self._errors.inc()

    def count_usage(self, usage: Usage) -> None:
        """Add what a model call, or several, used."""
        self._tokens.labels("in").inc(usage.input_tokens)
        self._tokens.labels("out").inc(usage.output_tokens)
        self._cost.inc(float(usage.known_cost))
        self._model_calls.inc(usage.requests)

    def render(self) -> tuple[bytes, str]:
        """Return the text and its media type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


def route_of(scope: Any) -> str:
    """Return the pattern of the route that a request took, from what Starlette left in its scope."""
    return getattr(scope.get("endpoint"), "path", "other")
