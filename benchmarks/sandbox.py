"""What a box costs: commands, its start, files, many of them at once, and a whole run, in each kind of box that this machine has."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from time import perf_counter
from typing import Final

import anyio
from _report import Report, Settings, median, report

from agentcore import Agent, Conversation, LocalWorkspace
from agentcore.errors import WorkspaceLost
from agentcore.testing import ScriptedLLM, call, say
from agentcore.workspace import Process, Workspace
from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.workspace import BoxWorkspace
from agentcore_tools import run_tool

Open = Callable[[], AbstractAsyncContextManager[BoxWorkspace]]

MEGABYTES: Final = 64
STEPS: Final = 20

# Starts a process for each line that comes, and says how long that took.
BARE: Final = """
import subprocess, sys, time
for line in sys.stdin:
    began = time.perf_counter()
    subprocess.run(["true"], capture_output=True)
    print(time.perf_counter() - began, flush=True)
"""


def measure(settings: Settings) -> Report:
    """Measure each kind of box that is there."""
    found = Report("What does a box cost, against bare processes in it, new execs, and the same work without a box?")
    anyio.run(measure_all, settings, found)
    return found


async def measure_all(settings: Settings, found: Report) -> None:
    """Measure one kind after the other."""
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        places: dict[str, Open] = {"plain": lambda: open_plain(new_folder(folder))}
        if shutil.which("bwrap") is not None:
            places["bubblewrap"] = lambda: BubblewrapWorkspace(new_folder(folder))
        image = os.environ.get("TEST_IMAGE")
        if image and os.environ.get("DOCKER_HOST"):
            places["docker"] = lambda: DockerWorkspace(image, pull="never")
        found.tell("places", list(places))
        for name, open_box in places.items():
            await measure_start(settings, found, name, open_box)
            async with open_box() as box:
                await measure_commands(settings, found, name, box)
                await measure_files(settings, found, name, box, folder)
                await measure_run(settings, found, name, box, new_folder(folder))
            await measure_many(settings, found, name, open_box)


def new_folder(folder: str) -> str:
    """Make a folder for one workspace."""
    return tempfile.mkdtemp(dir=folder)


def open_plain(folder: str) -> BoxWorkspace:
    """Make a workspace whose helper is a plain process."""
    return BoxWorkspace(PlainBox(folder, state=new_folder(folder)))


async def measure_start(settings: Settings, found: Report, name: str, open_box: Open) -> None:
    """Measure until the first command of a new box has ended, and until that of a box whose helper was killed."""
    cold: list[float] = []
    warm: list[float] = []
    for _ in range(settings.pick(5, 1)):
        began = perf_counter()
        async with open_box() as box:
            await box.run(["true"])
            cold.append(perf_counter() - began)
            with anyio.move_on_after(30):
                await lose_helper(box)
            began = perf_counter()
            await box.run(["true"])
            warm.append(perf_counter() - began)
    found.tell(f"{name}_ready_cold_ms", median(cold) * 1e3)
    found.tell(f"{name}_ready_warm_ms", median(warm) * 1e3)


async def lose_helper(box: BoxWorkspace) -> None:
    """Kill the helper, and in bubblewrap all of the box with it."""
    with suppress(WorkspaceLost):
        await box.run("kill -9 $PPID; sleep 1000")


async def measure_commands(settings: Settings, found: Report, name: str, box: BoxWorkspace) -> None:
    """Run a command through the box, as a bare process inside and, of Docker, as a new exec, in turn."""
    through: list[float] = []
    bare: list[float] = []
    execs: list[float] = []
    async with box.open_process(["python3", "-u", "-c", BARE]) as inside, open_exec(box) as execute:
        for number in range(settings.pick(100, 2)):
            began = perf_counter()
            assert (await box.run(["true"])).exit_code == 0
            through.append(perf_counter() - began)
            bare.append(await ask(inside))
            if execute is not None and number % 5 == 0:
                began = perf_counter()
                await execute()
                execs.append(perf_counter() - began)
    ours = median(through)
    found.tell(f"{name}_command_ms", ours * 1e3)
    found.tell(f"{name}_bare_process_ms", median(bare) * 1e3)
    found.hold(f"{name}_command_to_bare_ratio", ours / median(bare), at_most=2.0)
    if execs:
        found.tell(f"{name}_new_exec_ms", median(execs) * 1e3)
        found.hold(f"{name}_command_to_new_exec_ratio", ours / median(execs), at_most=0.05)


async def ask(process: Process) -> float:
    """Have the process inside start one of its own, and return how long that took."""
    await process.send(b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += await process.receive()
    return float(answer)


@asynccontextmanager
async def open_exec(box: BoxWorkspace) -> AsyncGenerator[Callable[[], Awaitable[None]] | None]:
    """Yield what runs a command by an exec of its own; None where that is no container."""
    if not isinstance(box, DockerWorkspace):
        yield None
        return
    async with open_engine() as engine:
        name = f"agentcore-{box.record().params['box']}"

        async def execute() -> None:
            async with engine.open_exec(name, ["true"]) as started:
                with suppress(anyio.EndOfStream):
                    await started.stream.receive()
                assert await started.exit_code() == 0

        yield execute


async def measure_files(settings: Settings, found: Report, name: str, box: BoxWorkspace, folder: str) -> None:
    """Upload a large file and download it again."""
    size = settings.pick(MEGABYTES, 1)
    there, back = anyio.Path(folder, "there"), anyio.Path(folder, "back")
    await there.write_bytes(os.urandom(size << 20))
    for way, travel in (
        ("upload", lambda: box.upload(there, "large")),
        ("download", lambda: box.download("large", back)),
    ):
        taken: list[float] = []
        for _ in range(settings.pick(3, 1)):
            began = perf_counter()
            await travel()
            taken.append(perf_counter() - began)
        found.tell(f"{name}_{way}_mb_per_second", size / median(taken))
    assert (await back.stat()).st_size == size << 20
    await box.run("rm large")


async def measure_run(settings: Settings, found: Report, name: str, box: Workspace, folder: str) -> None:
    """Let an agent run commands, in the box and on this machine, in turn."""
    taken: dict[str, list[float]] = {"box": [], "local": []}
    async with LocalWorkspace(folder) as local:
        for _ in range(settings.pick(5, 1)):
            for place, workspace in (("box", box), ("local", local)):
                steps = [call("run", command=f"echo {step}") for step in range(STEPS)]
                agent = Agent(llm=ScriptedLLM([*steps, say("done")]), tools=[run_tool()])
                began = perf_counter()
                async with Conversation(agent, workspace) as conversation:
                    await conversation.run("go")
                taken[place].append(perf_counter() - began)
    found.tell(f"{name}_run_of_{STEPS}_steps_ms", median(taken["box"]) * 1e3)
    found.tell(f"{name}_run_to_local_ratio", median(taken["box"]) / median(taken["local"]))


async def measure_many(settings: Settings, found: Report, name: str, open_box: Open) -> None:
    """Open many boxes at once, and have a command run in each."""
    count = settings.pick(20, 2)

    async def use() -> None:
        async with open_box() as box:
            assert (await box.run(["echo", "fine"])).stdout == "fine\n"
            nonlocal ready
            ready += 1
            if ready == count:
                found.tell(f"{name}_{count}_at_once_ready_seconds", perf_counter() - began)
                all_ready.set()
            await all_ready.wait()

    ready = 0
    all_ready = anyio.Event()
    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(use)
    found.tell(f"{name}_{count}_at_once_seconds", perf_counter() - began)


if __name__ == "__main__":
    report(measure)
