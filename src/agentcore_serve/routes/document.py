"""The OpenAPI document of the server, and a page that shows it."""

from __future__ import annotations

from typing import Final

from anyio.to_thread import run_sync
from starlette.responses import JSONResponse, Response

from agentcore_serve.routes.openapi import STYLE, render_page
from agentcore_serve.routes.table import Call, Route


async def _document(call: Call) -> Response:
    return JSONResponse(await run_sync(call.state.document))


async def _page(call: Call) -> Response:
    return Response(render_page(await run_sync(call.state.document)), media_type="text/html")


async def _style(call: Call) -> Response:
    del call
    return Response(STYLE, media_type="text/css")


DOCUMENT: Final = (
    Route("GET", "/openapi.json", _document, "read", answer=dict[str, object], summary="This document."),
    Route("GET", "/docs", _page, "read", media="text/html", summary="This document as a page."),
    Route("GET", "/docs.css", _style, None, media="text/css", summary="The page's style."),
)
"""The routes that describe the rest."""
