"""A tool whose call asks before it goes on, and is resumed with the answer."""

from __future__ import annotations

from typing import Any, Final

from pydantic import JsonValue

from agentcore.testing import call
from agentcore.tools import InputRequired, Question, RawTool, Resumption, ToolAnnotations, ToolContext, raw_tool
from talks import ran

WHERE: Final = Question(text="Where to?", options=("staging", "production"))
SURE: Final = Question(text="Sure?", answer_schema={"type": "boolean"})
DEPLOY = call("deploy", version="2.0")
SCHEMA: Final[dict[str, JsonValue]] = {
    "type": "object",
    "properties": {"version": {"type": "string"}},
    "required": ["version"],
}


def deploying(
    *, questions: tuple[Question, ...] = (WHERE,), note: Any = None, read_only: bool = False, resumes: bool = True
) -> RawTool:
    """Make the tool: it asks the questions, one after another, and returns what it was told.

    The note counts the questions, beside one of the test's own. What it was called with is noted in `ran`.
    """

    async def deploy(arguments: dict[str, JsonValue], ctx: ToolContext) -> str:
        ran.append((ctx.action_id, arguments["version"]))
        raise InputRequired(questions[0], {"asked": 1, "own": note})

    async def resume(arguments: dict[str, JsonValue], resumption: Resumption, ctx: ToolContext) -> str:
        ran.append((ctx.action_id, arguments["version"], resumption))
        assert isinstance(resumption.note, dict)
        asked = resumption.note["asked"]
        assert isinstance(asked, int)
        if resumption.declined is None and asked < len(questions):
            raise InputRequired(questions[asked], {"asked": asked + 1, "own": note})
        return f"deployed to {resumption.answer}" if resumption.declined is None else f"kept: {resumption.declined}"

    return raw_tool(
        "deploy",
        "Deploy a version.",
        SCHEMA,
        deploy,
        annotations=ToolAnnotations(read_only=read_only),
        resources=(),
        resume=resume if resumes else None,
    )
