"""`agentcore demo`: an agent mends a small project, offline. The model plays a script; everything else is real."""

from __future__ import annotations

import os
import tempfile

import anyio
from anyio.to_thread import run_sync
from rich.text import Text

from agentcore.agent import Agent
from agentcore.cli.console import BAD, DIM, GOOD, STRONG, make_console, say, say_words, styled
from agentcore.cli.demo_project import FILES, TASK, play, test_command
from agentcore.cli.home import open_store
from agentcore.cli.settings import Settings
from agentcore.cli.work import Job, work
from agentcore.ids import new_conversation_id
from agentcore.workspace import LocalWorkspace
from agentcore_tools import coding_tools

__all__ = ["show_demo"]


async def show_demo(settings: Settings, *, verbose: bool) -> int:
    """Show it, and give the exit code: 0 if the project's tests fail before and pass afterwards."""
    store = open_store(settings)
    console = make_console()
    root = await run_sync(_make_project)
    conversation_id = new_conversation_id()

    say(console, "agentcore demo", STRONG)
    say_words(console, "The model is scripted: its words were written beforehand, so no key and no network are needed.")
    say_words(console, "The rest is real: the project, the shell, the editor, the tests, and the log of it all.")
    for label, path in (("project: ", root), ("log:     ", os.path.join(store.location, conversation_id))):
        # A path is never cut, so that it can be copied whole; where it does not fit it gets a line of its own.
        fits = not console.is_terminal or len(label) + len(path) <= console.width
        say(console, styled(label, DIM).append(path) if fits else styled(label.rstrip(), DIM).append(f"\n{path}"))
    say(console, "")

    failed_before = not await _tests_pass(root)
    agent = Agent(llm=play(root), tools=coding_tools())
    code = await work(
        Job(
            agent=agent,
            workspace=root,
            store=store,
            settings=settings,
            id=conversation_id,
            message=TASK,
            verbose=verbose,
        )
    )
    if code:
        return code
    if not (failed_before and await _tests_pass(root)):
        say_words(console, f"The demo went wrong: the tests in {root} should fail before it and pass after it.", BAD)
        return 1
    say(console, "")
    say_words(console, "Run once more, outside of the agent, the project's tests pass.", GOOD)
    say_words(console, Text("With a real model (of any provider), here or in a folder of yours:", DIM))
    say(console, "  export ANTHROPIC_API_KEY=...")
    say(console, f"  {settings.program} run 'your task' --model anthropic/claude-sonnet-4-5")
    return 0


def _make_project() -> str:
    # It stays: people want to look at it. Systems empty their folder for such things by themselves.
    root = tempfile.mkdtemp(prefix="agentcore-demo-")
    for name, text in FILES.items():
        with open(f"{root}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    return root


async def _tests_pass(root: str) -> bool:
    async with LocalWorkspace(root) as workspace:
        with anyio.fail_after(60):
            return (await workspace.run(test_command())).exit_code == 0
