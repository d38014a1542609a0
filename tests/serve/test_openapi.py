"""The OpenAPI document: valid, complete, and the page that shows it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agentcore_serve.api import all_routes
from agentcore_serve.routes.openapi import build_document, render_page
from agentcore_serve.routes.table import WEBSOCKET, Route


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document of all routes."""
    return build_document(all_routes(), version="1.2.3")


def test_it_is_valid(document: dict[str, Any]) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(document)


@pytest.mark.parametrize("route", all_routes(), ids=lambda route: f"{route.method} {route.path}")
def test_every_route_is_in_it_with_its_scope_its_parameters_and_its_bodies(
    route: Route, document: dict[str, Any]
) -> None:
    operation = document["paths"][route.path.replace(":path}", "}")][
        "get" if route.method == WEBSOCKET else route.method.lower()
    ]
    if route.method == WEBSOCKET:
        assert "101" in operation["responses"]
        return
    assert operation.get("x-scope") == route.scope
    assert operation["security"] == ([] if route.scope is None else [{name: [route.scope]} for name in _SCHEMES])
    assert operation["summary"]
    in_path = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)", route.path))
    assert ("requestBody" in operation) == (route.body is not None or route.raw is not None)
    good = {status for status in operation["responses"] if status[0] in "123"}
    assert good
    assert {"401", "403"} <= operation["responses"].keys() or route.scope is None


_SCHEMES = ("bearer", "header", "cookie")


def test_operations_have_ids_of_their_own(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


def test_every_scope_is_used() -> None:
    assert {route.scope for route in all_routes()} == {None, "read", "run", "approve", "workspace", "admin"}


def test_no_two_routes_have_one_address() -> None:
    addresses = [(route.method, route.path) for route in all_routes()]
    assert len(addresses) == len(set(addresses))


def test_the_page_has_every_operation_and_no_script_and_nothing_from_elsewhere(document: dict[str, Any]) -> None:
    page = render_page(document)
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page
    assert "<script" not in page
    assert "style=" not in page
    assert "http:" not in page
    assert "https:" not in page


def test_what_models_say_is_text_on_the_page() -> None:
    async def endpoint(call: object) -> None: ...

    page = render_page(build_document([Route("GET", "/<b>", endpoint, None, summary="<script>")], version="<i>"))
    assert "<script" not in page
    assert "<i>" not in page
