"""What importing agentcore costs, against importing pydantic, which it stands on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from _report import Report, Settings, median, report

OURS = "from agentcore import Agent, Conversation, LLM, tool, FileStore"
BARE = "from pydantic import BaseModel"
FIRST_RUN = f"""
{OURS}
import anyio
from agentcore.testing import ScriptedLLM, call, say

@tool
async def weather(city: str) -> str:
    "Tell the weather."
    return f"sunny in {{city}}"

async def main():
    agent = Agent(llm=ScriptedLLM([call("weather", city="Rome"), say("It is sunny.")]), tools=[weather])
    async with Conversation(agent) as conversation:
        await conversation.run("How is the weather?")

anyio.run(main)
"""
HEAVY = ("aiohttp", "httpx", "litellm", "mcp", "openai", "rich", "starlette", "structlog", "typer")

TIMED = """
import time
began = time.process_time()
{statement}
ended = time.process_time()
import sys
print(ended - began, ended, len(sys.modules), *sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def measure(settings: Settings) -> Report:
    """Measure both in turn."""
    found = Report("What does importing agentcore cost, against bare pydantic, in a fresh process?")
    ours: list[Fresh] = []
    bare: list[Fresh] = []
    first: list[Fresh] = []
    with tempfile.TemporaryDirectory() as folder:
        # Installed packages come with their bytecode; an editable install in a fresh checkout must not be compiled here.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for statement in (OURS, BARE, FIRST_RUN):
            run(statement, environment)
        for _ in range(settings.pick(40, 1)):
            ours.append(run(OURS, environment))
            bare.append(run(BARE, environment))
            first.append(run(FIRST_RUN, environment))
    heavy = sorted(set(HEAVY) & ours[0].packages)
    pairs = list(zip(ours, bare, strict=True))
    found.hold("import_cpu_ratio", median([one.cpu / other.cpu for one, other in pairs]), 2.5)
    found.hold("heavy_packages_loaded", len(heavy), 0)
    found.tell("heavy_packages", heavy)
    found.tell("whole_process_cpu_ratio", median([one.process_cpu / other.process_cpu for one, other in pairs]))
    found.tell("import_cpu_ms", median([each.cpu for each in ours]) * 1e3)
    found.tell("pydantic_import_cpu_ms", median([each.cpu for each in bare]) * 1e3)
    found.tell("import_and_first_run_cpu_ms", median([each.cpu for each in first]) * 1e3)
    found.tell("modules", ours[0].modules)
    found.tell("pydantic_modules", bare[0].modules)
    return found


@dataclass(frozen=True)
class Fresh:
    """What a statement did to a fresh process."""

    cpu: float
    """Of the statement."""
    process_cpu: float
    """Of the process up to the statement's end: the interpreter's own start is in it."""
    modules: int
    packages: frozenset[str]


def run(statement: str, environment: dict[str, str]) -> Fresh:
    """Run a statement in a fresh process."""
    program = TIMED.format(statement=statement)
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    cpu, process_cpu, modules, *packages = ended.stdout.split()
    return Fresh(float(cpu), float(process_cpu), int(modules), frozenset(packages))


if __name__ == "__main__":
    report(measure)
