"""A skill: the model sees its name and description, and reads the text when a task needs it.

Run it: python examples/skill/run.py. It needs no key and no network; a scripted model plays the agent's part.

What to look at:
- the skill is a folder beside this program: `.agents/skills/release-notes` with a `SKILL.md` and what that refers to;
- `AgentContext(sources=[Skills()])` lists it in the prompt, and adds the tool `skill`, which reads it and its files;
- `/release-notes` in a message shows it without asking the model.
"""

from __future__ import annotations

from pathlib import Path

import anyio

from agentcore import Agent, AgentContext, Conversation, LocalWorkspace, Skills
from agentcore.events import ContextAdded, ObservationEvent, SystemPromptEvent
from agentcore.testing import ScriptedLLM, call, say


async def main() -> None:
    script = [
        call("skill", name="release-notes"),
        call("skill", name="release-notes", file="references/style.md"),
        say("- `run` resumes by itself."),
    ]
    for message in ("What is new?", "/release-notes"):
        agent = Agent(
            llm=ScriptedLLM(script if message == "What is new?" else [say("Which version?")]),
            context=AgentContext(sources=[Skills(user=False, packages=False)]),
        )
        async with LocalWorkspace(Path(__file__).parent) as workspace, Conversation(agent, workspace) as conversation:
            await conversation.run(message)
        # The log can be read when the conversation is closed, and then it has an end.
        async for event in conversation.events():
            match event:
                case SystemPromptEvent():
                    print("in the prompt:", ", ".join(event.parts))
                case ContextAdded():
                    print("added:", event.name)
                case ObservationEvent():
                    print(f"the tool {event.tool_name}:", event.text.splitlines()[0])
                case _:
                    pass


if __name__ == "__main__":
    anyio.run(main)
