"""A tool whose arguments are described by a foreign JSON Schema: a server's, a file's, a remote catalogue's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pydantic import ConfigDict

from agentcore._text import Mask, already_masked
from agentcore.assessment import SecurityRisk
from agentcore.errors import SchemaError, ToolArgumentsError
from agentcore.messages import ToolSchema
from agentcore.schema import SchemaCheck, plain_schema
from agentcore.tools.arguments import describe_parameters, preview
from agentcore.tools.context import ToolContext
from agentcore.tools.definition import Action, Arguments, Tool, ToolAnnotations
from agentcore.tools.observation import Observation, observe
from agentcore.tools.resources import Resource
from agentcore.tools.resumption import Resumption

RawExecute: TypeAlias = Callable[[Arguments, ToolContext], Awaitable[Any]]
"""Does one call, with arguments that fit the schema; what it returns is shown as what a `@tool` function returns."""


RawResume: TypeAlias = Callable[[Arguments, Resumption, ToolContext], Awaitable[Any]]
"""Continues a call that raised `InputRequired`; what it returns is shown likewise."""


class RawAction(Action):
    """Arguments that fit a JSON Schema."""

    # Reading the source for attribute docstrings would be most of what importing this costs.
    model_config = ConfigDict(use_attribute_docstrings=False)

    arguments: Arguments


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RawTool(Tool[RawAction, Observation]):
    """A tool with a JSON Schema in place of an `Action` model. `raw_tool` makes one."""

    parameters: Mapping[str, Any]
    """The schema as it was given. The model is shown the same in the plain dialect that every provider takes."""

    @cached_property
    def schema(self) -> ToolSchema:
        """The schema for models."""
        parameters = plain_schema(self.parameters)
        parameters.setdefault("type", "object")
        parameters.setdefault("properties", {})
        return ToolSchema(name=self.name, description=self.description, parameters=parameters)

    @cached_property
    def _check(self) -> SchemaCheck:
        return SchemaCheck(self.parameters)

    def parse(self, arguments: Mapping[str, Any], *, mask: Mask = already_masked) -> RawAction:
        """Check arguments against the schema.

        Args:
            arguments: The arguments.
            mask: As in `Tool.parse`.

        Raises:
            ToolArgumentsError: they do not fit; its text tells a model what is wrong with which.
        """
        given = dict(arguments)
        try:
            errors = self._check.errors(given)
        except SchemaError as error:
            errors = [str(error)]
        if errors:
            raise ToolArgumentsError(
                self.name, errors, preview(given, mask=mask), describe_parameters(self.schema.parameters)
            )
        return RawAction(arguments=given)


def raw_tool(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    execute: RawExecute,
    *,
    annotations: ToolAnnotations | None = None,
    resources: Callable[[RawAction, str], Sequence[Resource]] | Sequence[Resource] | None = None,
    risk: Callable[[RawAction], SecurityRisk] | SecurityRisk | None = None,
    resume: RawResume | None = None,
) -> RawTool:
    """Make a tool of a JSON Schema and a function of the arguments.

    The first check of arguments in a process imports jsonschema.

    Args:
        name: 1 to 64 letters, digits, `_` or `-`.
        description: What the model is told of it.
        schema: A JSON Schema of type "object".
        execute: Does one call: `async def execute(arguments, ctx)`.
        annotations: What it says of itself.
        resources: As in `Tool`.
        risk: As in `Tool`.
        resume: Continues a call that raised `InputRequired`: `async def resume(arguments, resumption, ctx)`.

    Raises:
        ValueError: the name can't be a tool's.
        SchemaError: the schema is one of something else than an object.
    """
    kind = schema.get("type", "object")
    if kind != "object":
        raise SchemaError(f"The schema of the tool {name!r} is of type {kind!r}, and arguments are an object.")

    async def run(action: RawAction, ctx: ToolContext) -> Observation:
        return observe(await execute(dict(action.arguments), ctx), name)

    async def continue_call(action: RawAction, resumption: Resumption, ctx: ToolContext) -> Observation:
        assert resume is not None
        return observe(await resume(dict(action.arguments), resumption, ctx), name)

    return RawTool(
        name=name,
        description=description,
        action=RawAction,
        execute=run,
        annotations=annotations or ToolAnnotations(),
        resources=resources,
        risk=risk,
        resume=None if resume is None else continue_call,
        parameters=schema,
    )
