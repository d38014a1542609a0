"""How much there is to read, and how far one has to walk: files, lines, and the way of a message through the code.

The way is that of one warm run: two model calls, one tool, a file store, a provider on the loopback. A move is a call from a
file of the project to another one; the threads that work for it count, `agentcore.testing` does not.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
from _agents import agent_tools
from _provider import provider
from _report import Report, Settings, report

from agentcore import LLM, Agent, Conversation, FileStore

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
TESTING = SOURCE / "agentcore" / "testing"


def measure(settings: Settings) -> Report:
    """Measure all of it."""
    found = Report("How many files and lines are there, and how many does one run cross?")
    source = list(SOURCE.rglob("*.py"))
    product = [path for path in source if TESTING not in path.parents]
    found.hold("source_files", len(source), 270)
    found.hold("source_lines_without_testing", count_lines(product), 37_000)
    found.tell("testing_lines", count_lines([path for path in source if TESTING in path.parents]))
    found.tell("test_lines", count_lines(list((ROOT / "tests").rglob("*.py"))))
    found.tell("longest_source_file_lines", max(count_lines([path]) for path in source))
    trace = anyio.run(trace_run, settings)
    found.hold("files_of_one_run", len(trace.files), 70)
    found.hold("moves_of_one_run", trace.moves, 750)
    found.tell("calls_of_one_run", trace.calls)
    return found


def count_lines(paths: list[Path]) -> int:
    """Count the lines of files."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


class Trace:
    """Counts the calls into the project's files, and those that lead from one of them to another."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.calls = 0
        self.moves = 0
        self._source = str(SOURCE)
        self._testing = str(TESTING)

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take a profile event."""
        del argument
        file = frame.f_code.co_filename
        if event != "call" or not self._is_ours(file):
            return
        self.calls += 1
        self.files.add(file)
        caller = frame.f_back
        while caller is not None and not self._is_ours(caller.f_code.co_filename):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != file:
            self.moves += 1

    def _is_ours(self, file: str) -> bool:
        return file.startswith(self._source) and not file.startswith(self._testing)


async def trace_run(settings: Settings) -> Trace:
    """Trace the second of two runs that are alike."""
    trace = Trace()
    with provider(turns=1) as address, tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        agent = Agent(llm=LLM(model="openai/bench", base_url=address, api_key="none"), tools=agent_tools())
        for number in range(2):
            async with Conversation(agent, folder, store=FileStore(f"{folder}/logs"), id=str(number)) as conversation:
                if number:
                    threading.setprofile(trace.note)
                    sys.setprofile(trace.note)
                await conversation.run("Find where the price is rounded.")
                sys.setprofile(None)
                threading.setprofile(None)  # type: ignore[arg-type]
    return trace


if __name__ == "__main__":
    report(measure)
