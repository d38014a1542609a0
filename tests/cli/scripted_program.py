"""What `agentcore run` does, with a model that plays the script in the first argument. Started by tests.

python scripted_program.py SCRIPT [--confirm] [--json] [--verbose] [--deaf] [--steps N] [--id ID] [--message TEXT]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from agentcore import Agent, AlwaysConfirm, Limits, tool
from agentcore.cli.conversations import open_store
from agentcore.cli.process import execute
from agentcore.cli.runner import Job, work
from agentcore.cli.settings import read_settings
from agentcore.errors import AuthenticationError, RateLimited
from agentcore.testing import Gate, ScriptedLLM, call, calls, hang, say
from agentcore_tools import coding_tools

WORDS: dict[str, Any] = {
    "AuthenticationError": AuthenticationError,
    "Gate": Gate,
    "RateLimited": RateLimited,
    "call": call,
    "calls": calls,
    "hang": hang,
    "say": say,
}


@tool
def sleep_deaf(seconds: int) -> str:
    """Sleep in a thread, which nobody can stop.

    Args:
        seconds: For how long.
    """
    time.sleep(seconds)
    return "slept"


def main() -> None:
    """Read the arguments and work."""
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--deaf", action="store_true", help="with a tool that can't be stopped, nor recorded")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--id")
    parser.add_argument("--message", default="Do it.")
    given = parser.parse_args()
    settings = read_settings()
    script: Any = eval(given.script, WORDS)
    job = Job(
        agent=Agent(llm=ScriptedLLM(script), tools=(*coding_tools(), sleep_deaf) if given.deaf else coding_tools()),
        workspace=os.getcwd(),
        store=open_store(settings),
        settings=settings,
        id=given.id,
        message=given.message,
        confirm=AlwaysConfirm() if given.confirm else None,
        limits=Limits(steps=given.steps) if given.steps else None,
        json=given.json,
        verbose=given.verbose,
    )
    execute(lambda: work(job), debug=False)


if __name__ == "__main__":
    main()
