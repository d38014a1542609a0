"""`import agentcore` is what every program, test and command pays first."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "aiodocker",
    "aiohttp",
    "httpx",
    "httpx2",
    "hypercorn",
    "jsonschema",
    "litellm",
    "mcp",
    "mcp_types",
    "openai",
    "rich",
    "starlette",
    "structlog",
    "typer",
    "uvicorn",
}


def modules_after(program: str) -> set[str]:
    """Run a program in a new interpreter; give the top-level modules that are loaded at its end."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return {name.partition(".")[0] for name in ended.stdout.split()}


@pytest.mark.parametrize(
    "program",
    [
        "from agentcore import Agent, Conversation, LLM, tool, FileStore",
        "from agentcore import *",
        "import agentcore_tools",
        "from agentcore.mcp import MCPServer, MCPToolset, mcp_toolsets",
    ],
)
def test_nothing_heavy_is_loaded_by(program: str) -> None:
    assert modules_after(program) & HEAVY == set()


def test_the_package_alone_loads_no_pydantic() -> None:
    assert "pydantic" not in modules_after("import agentcore")


def test_no_model_is_built_by_an_import() -> None:
    """Building the first one costs as much as all the rest; a value that a module makes for itself does that."""
    program = "from agentcore import *; import agentcore_tools, sys; print('pydantic.plugin._loader' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "False\n"


def test_what_is_watched_for_would_be_seen() -> None:
    assert "rich" in modules_after("import rich.console")


CHECKED_LATE = """
import sys, threading
import anyio

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "jsonschema":
            print("imported", "on the loop" if threading.current_thread() is threading.main_thread() else "in a thread")

sys.meta_path.insert(0, Watch())

from agentcore import Agent, Conversation, ToolContext, ask_user, tool
from agentcore.testing import ScriptedLLM, call, say

SCHEMA = {"type": "integer"}

@tool(resources=())
async def ask_live(ctx: ToolContext) -> str:
    "Ask while it runs."
    return str(await ctx.question("Which port?", SCHEMA))

async def main(what):
    first = call(what) if what == "ask_live" else call("ask_user", text="Which port?", answer_schema=SCHEMA)
    asking = Agent(llm=ScriptedLLM([first, say("done")]), tools=[ask_live if what == "ask_live" else ask_user])
    begun_with = Agent(llm=ScriptedLLM([say("one")])) if what == "switched" else asking
    async with Conversation(begun_with, on_question=lambda question: 80) as conversation:
        result = await conversation.run("go")
        if what == "switched":
            await conversation.set_agent(asking)
            result = await conversation.run("ask")
        print(result.text)

anyio.run(main, sys.argv[1])
"""


@pytest.mark.parametrize("what", ["ask_user", "ask_live", "switched"])
def test_what_checks_the_schema_of_an_answer_is_imported_in_a_thread(what: str) -> None:
    program = [sys.executable, "-c", CHECKED_LATE, what]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "imported in a thread\ndone\n"
