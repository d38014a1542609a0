"""`WebView`: a program inside that browsers can look at, and the label by which an image offers some.

The label may come from anybody who made an image; it only names what is inside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from agentcore._value import Value
from agentcore.errors import WorkspaceError

LABEL: Final = "agentcore.views"
"""The label of an image: a JSON object, name to `WebView`."""
_MOST: Final = 16
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")


class WebView(Value):
    """A web program inside."""

    port: Annotated[int, Field(ge=1, le=65535)]
    """The port on 127.0.0.1 inside, where it listens."""
    path: Annotated[str, Field(pattern=r"^/([!-.0-~][!-~]{0,500})?$")] = "/"
    """The path of its first page. In it, "{base}" stands for the path below which the view is served, as in "/vnc.html?path={base}socket"."""
    command: tuple[str, ...] = ()
    """How to start it: a program and its arguments. It is started when somebody first looks. Empty: it runs already."""

    def first_page(self, base: str = "/") -> str:
        """Return the path of its first page where it is served below a path, which begins and ends with a slash."""
        return base + self.path[1:].replace("{base}", base[1:])


def check_views(views: Mapping[str, WebView]) -> None:
    """Refuse names that are not names of views.

    Raises:
        ValueError: It says how to write them.
    """
    for name in views:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a view: write small letters, digits and '-', as in 'editor'."
            )
    if len(views) > _MOST:
        raise ValueError(f"There are {len(views)} views, and at most {_MOST} are possible.")


def parse_views(label: str) -> dict[str, WebView]:
    """Parse the label of an image; no views if it is empty.

    Raises:
        WorkspaceError: It is not one.
    """
    if not label:
        return {}
    try:
        views = _reader().validate_json(label)
        check_views(views)
    except (ValidationError, ValueError) as error:
        raise WorkspaceError(
            f"The image's label {LABEL!r} does not name views ({str(error).splitlines()[0]})."
            ' Write it as {"app": {"port": 8000}}, or build the image with `agentcore sandbox build`.'
        ) from None
    return views


@cache
def _reader() -> TypeAdapter[dict[str, WebView]]:
    return TypeAdapter(dict[str, WebView])


def format_views(views: Mapping[str, WebView]) -> str:
    """Return the label that names these views."""
    return json.dumps({name: view.model_dump(mode="json") for name, view in sorted(views.items())})
