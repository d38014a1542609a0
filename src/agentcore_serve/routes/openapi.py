"""The OpenAPI 3.1 document, made of the list of routes and the models that they name, and a page that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final, cast

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from agentcore.wire.problems import Problem
from agentcore_serve.routes.dispatch import adapter
from agentcore_serve.routes.table import WEBSOCKET, Route

_PARAMETER: Final = re.compile(r"{(\w+)(?::(\w+))?}")
_PROBLEM: Final = "application/problem+json"
_SCHEMES: Final = ("bearer", "header", "cookie")


def build_document(routes: Sequence[Route], *, version: str) -> dict[str, Any]:
    """Return the OpenAPI document of these routes."""
    schemas, components = _schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operations = paths.setdefault(_PARAMETER.sub(r"{\1}", route.path), {})
        if route.method == WEBSOCKET and "get" in operations:
            operations["get"]["responses"]["101"] = {"description": "With Upgrade: websocket, the same as a WebSocket."}
            continue
        verb = "get" if route.method == WEBSOCKET else route.method.lower()
        operations[verb] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agentcore",
            "version": version,
            "description": "Conversations with agents: their logs, their runs, and the workspaces they work in.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "agentcore"},
            },
        },
    }


_Key = tuple[str, JsonSchemaMode]


def _schemas(routes: Iterable[Route]) -> tuple[dict[_Key, Any], dict[str, Any]]:
    wanted: dict[_Key, TypeAdapter[Any]] = {("Problem", "serialization"): adapter(Problem)}
    for route in routes:
        for model in (route.body, route.query):
            if model is not None:
                wanted[_key(model, "validation")] = adapter(model)
        for model in (route.answer, *(model for _, model in route.also)):
            if model is not None:
                wanted[_key(model, "serialization")] = adapter(model)
    inputs: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        (name, mode, each) for (name, mode), each in wanted.items()
    ]
    found, shared = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}")
    components: dict[str, Any] = shared.get("$defs", {})
    _allow_several(components)
    return dict(found), components


def _allow_several(schema: Any) -> None:
    """Replace "one of" by "any of" where no field tells which: an event of a known kind fits the unknown ones as well."""
    if isinstance(schema, dict):
        each = cast("dict[str, Any]", schema)
        if "oneOf" in each and "discriminator" not in each:
            each["anyOf"] = each.pop("oneOf")
        for part in each.values():
            _allow_several(part)
    elif isinstance(schema, list):
        for part in cast("list[Any]", schema):
            _allow_several(part)


def _key(model: Any, mode: JsonSchemaMode) -> _Key:
    return repr(model), mode


def _operation(route: Route, schemas: dict[_Key, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": _parameters(route),
        "responses": _responses(route, schemas),
        "security": [] if route.scope is None else [{scheme: [route.scope]} for scheme in _SCHEMES],
    }
    if route.scope is not None:
        operation["x-scope"] = route.scope
    if route.body is not None:
        schema = schemas[_key(route.body, "validation")]
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    elif route.raw is not None:
        operation["requestBody"] = {"required": True, "content": {route.raw: {}}}
    return operation


def _operation_id(route: Route) -> str:
    words = re.findall(r"\w+", route.path.removeprefix("/api/v1"))
    return "_".join((route.method.lower(), *words))


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "integer" if kind == "int" else "string"}}
        for name, kind in _PARAMETER.findall(route.path)
    ]
    if route.query is not None:
        fields = adapter(route.query).json_schema(ref_template="#/components/schemas/{model}")
        required = fields.get("required", ())
        found += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in fields.get("properties", {}).items()
        ]
    return found


def _responses(route: Route, schemas: dict[_Key, Any]) -> dict[str, Any]:
    problem = {_PROBLEM: {"schema": schemas["Problem", "serialization"]}}
    if route.method == WEBSOCKET:
        answers: dict[str, Any] = {"101": {"description": "The connection is a WebSocket now."}}
    elif route.answer is None and route.media == "application/json":
        answers = {str(204 if route.status == 200 else route.status): {"description": "Done."}}
    else:
        schema = {} if route.answer is None else {"schema": schemas[_key(route.answer, "serialization")]}
        answers = {str(route.status): {"description": route.summary or "Done.", "content": {route.media: schema}}}
    for status, model in route.also:
        schema = schemas[_key(model, "serialization")]
        answers[str(status)] = {"description": "Done.", "content": {"application/json": {"schema": schema}}}
    if route.scope is not None:
        answers["401"] = {"description": "No key, or one that is not known.", "content": problem}
        answers["403"] = {"description": f"The key lacks the scope {route.scope!r}.", "content": problem}
    answers["default"] = {"description": "It was refused, or failed.", "content": problem}
    return answers


def render_page(document: dict[str, Any]) -> str:
    """Return the document as a page of HTML: no script, and nothing from elsewhere."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>agentcore API</title>",
        "<meta name='viewport' content='width=device-width'><link rel='stylesheet' href='docs.css'></head><body><main>",
        f"<h1>agentcore API <small>{escape(document['info']['version'])}</small></h1>",
        "<p>The same as <a href='openapi.json'>an OpenAPI document</a>. Errors are <code>application/problem+json</code>.</p>",
    ]
    tags: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            tags.setdefault(operation["tags"][0], []).append((verb, path, operation))
    for tag, operations in tags.items():
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts.extend(_render_operation(*each) for each in operations)
    parts.append("<h2>Models</h2>")
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"<details id='{escape(name)}'><summary><code>{escape(name)}</code></summary>")
        parts.append(f"{_render_fields(schema)}</details>")
    parts.append("</main></body></html>")
    return "".join(parts)


def _render_operation(verb: str, path: str, operation: dict[str, Any]) -> str:
    scope = operation.get("x-scope")
    needs = f"scope <code>{escape(scope)}</code>" if scope else "no key"
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{each['in']}</td><td>{_render_type(each['schema'])}</td></tr>"
        for each in operation["parameters"]
    )
    body: dict[str, Any] = operation.get("requestBody", {"content": {}})
    sent = "".join(
        f"<p>Body: {escape(media)} {_render_type(content.get('schema', {}))}</p>"
        for media, content in body["content"].items()
    )
    answers = "".join(
        f"<p>{status}: {''.join(_render_type(content.get('schema', {})) for content in answer.get('content', {}).values())}"
        f" {escape(answer['description'])}</p>"
        for status, answer in operation["responses"].items()
        if status not in {"401", "403", "default"}
    )
    return (
        f"<details><summary><b>{verb.upper()}</b> <code>{escape(path)}</code> {escape(operation['summary'])}</summary>"
        f"<p>Needs {needs}.</p>{f'<table>{rows}</table>' if rows else ''}{sent}{answers}</details>"
    )


def _render_type(schema: dict[str, Any]) -> str:
    if reference := schema.get("$ref"):
        name = escape(reference.rsplit("/", 1)[-1])
        return f"<a href='#{name}'><code>{name}</code></a>"
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(_render_type(each) for each in schema[union])
    if schema.get("type") == "array":
        return f"list of {_render_type(schema.get('items', {}))}"
    return f"<code>{escape(str(schema.get('type', schema.get('const', 'any'))))}</code>"


def _render_fields(schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{_render_type(each)}</td>"
        f"<td>{escape(each.get('description', ''))}</td></tr>"
        for name, each in schema.get("properties", {}).items()
    )
    about = f"<p>{escape(schema['description'])}</p>" if "description" in schema else ""
    return f"{about}<table>{rows}</table>" if rows else f"{about}<p>{_render_type(schema)}</p>"


STYLE: Final = """body{font:15px/1.5 system-ui,sans-serif;margin:0;color:#222;background:#fff}
main{max-width:60rem;margin:0 auto;padding:1rem}
code{font:13px ui-monospace,monospace}
details{border-top:1px solid #ddd;padding:.4rem 0}
summary{cursor:pointer}
summary b{display:inline-block;width:6rem}
td{padding:.1rem 1rem .1rem 0;vertical-align:top}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#181818}a{color:#8bf}details{border-color:#444}}
"""
