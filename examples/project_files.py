"""Project files: the model is shown the conventions in AGENTS.md, and those of a folder when it touches a file there.

Run it: python examples/project_files.py. It needs no key and no network; a scripted model plays the agent's part.

What to look at:
- `Agent(context=AgentContext(sources=[ProjectFiles()]))` reads the files; without it nothing is read;
- what is there at the beginning is in the system prompt; `src/AGENTS.md` is appended when `src/app.py` is read;
- a link that leads out of the project is left out, and the log says so.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio

from agentcore import Agent, AgentContext, Conversation, LocalWorkspace, ProjectFiles
from agentcore.events import ContextAdded, ContextNotice, ConversationStateUpdateEvent, SystemPromptEvent
from agentcore.testing import ScriptedLLM, call, say
from agentcore_tools import read_file_tool

FILES = {
    "AGENTS.md": "Tests are run with `nox`.\n",
    "CLAUDE.md": "Our style is in @docs/style.md.\n",
    "docs/style.md": "Use tabs.\n",
    "src/AGENTS.md": "Nothing in here may import tkinter.\n",
    "src/app.py": "print('hello')\n",
}


def make_project(project: Path) -> None:
    for name, text in FILES.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    (project / "GEMINI.md").symlink_to("/etc/passwd")


async def main(project: Path) -> None:
    agent = Agent(
        llm=ScriptedLLM([call("read_file", path="src/app.py"), say("It prints hello.")]),
        tools=[read_file_tool()],
        context=AgentContext(sources=[ProjectFiles()]),
    )
    async with LocalWorkspace(project) as workspace, Conversation(agent, workspace) as conversation:
        await conversation.run("What does the program do?")
    # The log can be read when the conversation is closed, and then it has an end.
    async for event in conversation.events():
        match event:
            case SystemPromptEvent():
                print("in the prompt:", ", ".join(event.parts))
            case ContextAdded():
                print("added:", event.name)
            case ConversationStateUpdateEvent(update=ContextNotice() as notice):
                print("notice:", notice.detail)
            case _:
                pass


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder))
        anyio.run(main, Path(folder))
