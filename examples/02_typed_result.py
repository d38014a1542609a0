"""A typed result: the agent has to finish with a value of your model, and `result.output` is that value.

Run it: python examples/02_typed_result.py. It needs no key and no network; a scripted model plays the agent's part.

What to look at:
- `finish` is a tool that every agent has; `output=` adds a `result` argument to it, with the schema of your model;
- a result that does not fit is answered with what is wrong, and the model tries again.
"""

from __future__ import annotations

import anyio
from pydantic import BaseModel, Field

from agentcore import Agent, Conversation
from agentcore.testing import ScriptedLLM, call


class Review(BaseModel):
    grade: int = Field(ge=1, le=5)
    reasons: list[str] = []


async def main() -> None:
    model = ScriptedLLM(
        [
            call("finish", message="Good work.", result={"grade": 9}),
            call("finish", message="Good work.", result={"grade": 5, "reasons": ["It is tested."]}),
        ]
    )
    async with Conversation(Agent(llm=model, output=Review)) as conversation:
        result = await conversation.run("Review this change.")
        assert isinstance(result.output, Review)
        print(result.text, result.output.grade, result.output.reasons)


anyio.run(main)
