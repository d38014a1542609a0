"""The routes of the watch page: its files. They are the same for everybody, and hold nothing of anybody."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from starlette.responses import FileResponse, Response

from agentcore_serve.routes.table import Call, Route

_FOLDER: Final = Path(__file__).parent
_TAG: Final = "page"
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}

SCRIPT: Final = "vendor/htm-preact-3.1.1.js"
"""`preact/standalone.module.js` of htm 3.1.1, unchanged."""

FILES: Final = (
    "api.js",
    "app.js",
    "ask.js",
    "blocks.js",
    "conversation.js",
    "create.js",
    "icon.svg",
    "list.js",
    "log.js",
    "markdown.js",
    "stream.js",
    "style.css",
    "text.js",
    "timeline.js",
    SCRIPT,
)
"""The files below `/page/`."""


async def _serve(call: Call, *, name: str) -> Response:
    del call
    # Asked for again each time: after an update, no file of the old page goes with those of the new one.
    return FileResponse(_FOLDER / name, media_type=_TYPES[Path(name).suffix], headers={"Cache-Control": "no-cache"})


def _route(path: str, name: str, summary: str) -> Route:
    media = _TYPES[Path(name).suffix]
    return Route("GET", path, partial(_serve, name=name), None, media=media, summary=summary, tag=_TAG)


PAGE: Final = (
    _route("/", "index.html", "The watch page."),
    *(_route(f"/page/{name}", name, "A file of the watch page.") for name in FILES),
)
"""All of them."""
