"""Resume in another process: the first one records a message and ends, the second one has nothing but the log.

Run it: python examples/05_resume_in_another_process.py. It starts itself twice more, as those two processes. It needs no
key and no network: nothing asks the model.

What to look at:
- `Conversation(None, id=..., store=...)` resumes with the agent that the log records, without its key;
- the tools of an installed package are found again; a function in the script that was started is not, from another program;
- the workspace, the limits and the policy are the recorded ones.
"""

from __future__ import annotations

import subprocess
import sys
from tempfile import TemporaryDirectory

import anyio

from agentcore import LLM, Agent, AlwaysConfirm, Conversation, FileStore, Limits
from agentcore_tools import coding_tools


async def begin(folder: str) -> None:
    agent = Agent(llm=LLM(model="openai/gpt-5-mini"), tools=coding_tools())
    store = FileStore(f"{folder}/logs")
    limits = Limits(steps=20)
    async with Conversation(agent, folder, store=store, id="work", confirm=AlwaysConfirm(), limits=limits) as work:
        await work.send("Find out why the tests fail.")
        print("began with", work.state.head, "events")


async def resume(folder: str) -> None:
    async with Conversation(None, store=FileStore(f"{folder}/logs"), id="work") as work:
        print("resumed", work.state.status, "in", "the same folder" if work.workspace.root == folder else "another one")
        print("limits:", work.state.limits.steps, "steps; policy:", work.state.policy)
        # `await work.run()` would continue from here, with the key in the environment.


def main() -> None:
    with TemporaryDirectory() as folder:
        for part in ("begin", "resume"):
            subprocess.run([sys.executable, __file__, part, folder], check=True)


if len(sys.argv) == 3:
    anyio.run({"begin": begin, "resume": resume}[sys.argv[1]], sys.argv[2])
else:
    main()
