"""Probes for supervisors: does the process live, does it take work, and how much does it do?"""

from __future__ import annotations

from starlette.responses import PlainTextResponse, Response

from agentcore_serve.routes.table import Call, Route


async def _live(call: Call) -> Response:
    del call
    return PlainTextResponse("ok")


async def _ready(call: Call) -> Response:
    if call.state.drain.ready:
        return PlainTextResponse("ok")
    return PlainTextResponse("draining", status_code=503, headers={"Retry-After": "5"})


async def _metrics(call: Call) -> Response:
    text, media = call.state.metrics.render()
    return Response(text, media_type=media)


PROBES = (
    Route("GET", "/livez", _live, None, summary="True as long as the process answers.", media="text/plain"),
    Route("GET", "/readyz", _ready, None, summary="503 while the server starts and drains.", media="text/plain"),
    Route("GET", "/metrics", _metrics, "admin", summary="Counts, in Prometheus' format.", media="text/plain"),
)
"""Without a version in their paths, as supervisors expect them."""
