"""What every test lives with: both event loops, no blocking call on them, reproducible random data."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster
from hypothesis import HealthCheck, settings
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs] - it has none
from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]
from xdist.workermanage import WorkerController  # pyright: ignore[reportMissingTypeStubs]

import agentcore

# The same examples in every run: a failure belongs to a change, not to the day. `nox -s faults` looks further
# (--hypothesis-profile=faults), with new examples each time.
settings.register_profile("every-commit", derandomize=True, database=None, deadline=None, max_examples=20)
settings.register_profile("ci", derandomize=True, database=None, deadline=None, max_examples=50)
settings.register_profile(
    "faults",
    deadline=None,
    max_examples=2_000,
    print_blob=True,
    # Many examples of a whole conversation are slow to make; the session has the time.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("every-commit")

# Going through all objects, those of thousands of tests included, finds what is left open as well when it is done less
# often: the last time is at the end of the session.
gc.set_threshold(2_000, 10, 50)

# Where Python writes no bytecode, as in many containers, each worker and each of the hundreds of programs that the tests start
# would compile everything anew, which takes longer than the tests. What is written is in __pycache__, which git ignores.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would each process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run an async test on both event loops (on trio in some folders, and everywhere with `--every-loop`)."""
    backend: str = request.param
    return backend


@pytest.fixture(scope="session")
def _blockbuster() -> BlockBuster:
    """Watch what runs under a frame of ours; what a test does for itself (reading a file to check it) may block."""
    watch = BlockBuster(["agentcore", "agentcore_tools", "agentcore_sandbox", "agentcore_serve"])
    for function in watch.functions.values():
        # Once per process, when the first model's schema is built, pydantic looks through what is installed for plugins.
        function.can_block_in("pydantic/plugin/_loader.py", "get_plugins")
        # Which folder is current is in the kernel's memory: asking for it waits for nothing.
        function.can_block_in("record/files/store.py", "__init__")
        # coverage's collector works inside of whatever runs: it looks at each new file, and waits for other threads' data.
        function.can_block_in("coverage/control.py", "_should_trace")
        function.can_block_in("coverage/collector.py", "lock_data")
    return watch


@pytest.fixture(autouse=True)
def _nothing_blocks_the_event_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make a blocking call on the event loop's thread raise `BlockingError`.

    On asyncio only: blockbuster asks asyncio whether a loop runs. The trio run of the same test has the same code.
    """
    if "anyio_backend" not in request.fixturenames or request.getfixturevalue("anyio_backend") != "asyncio":
        yield
        return
    watch: BlockBuster = request.getfixturevalue("_blockbuster")
    watch.activate()
    try:
        yield
    finally:
        watch.deactivate()


@pytest.fixture(scope="session")
def surroundings() -> dict[str, str]:
    """Give what a program needs of the environment to start, and nothing else of it."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "COVERAGE_PROCESS_START") if name in os.environ}
    # The package that the tests themselves import, installed or not.
    (package,) = agentcore.__path__
    return {"PYTHONPATH": os.path.dirname(os.path.abspath(package)), "PYTHONDONTWRITEBYTECODE": "1", **kept}


TRIO_AT_EVERY_COMMIT = ("record", "tools_floor")
"""The folders where a difference between the event loops would do harm. The others run on trio with `--every-loop`."""
TRIO_IN_SLOW_TESTS = ("conversation", "record", "secrets", "tools_floor", "workspace")
"""The same for slow tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: every test on both event loops, and new transcripts of the command line."""
    parser.addoption(
        "--every-loop", action="store_true", help="run every async test on trio too, not those of some folders alone"
    )
    parser.addoption("--update", action="store_true", help="rewrite tests/cli/transcripts with what is printed now")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Share the whole suite out, to one worker more than there are cores, because many tests wait for processes.

    A part of it is done sooner than workers are started.
    """
    here = Path(__file__).parent
    if {Path(argument).resolve() for argument in config.args}.isdisjoint({here, here.parent}):
        return 0
    return min((os.cpu_count() or 1) + 1, 6)


def _costly(nodeid: str) -> str | None:
    """Name the costly thing that this test prepares, and others do too."""
    file = nodeid.partition("::")[0]
    return next((costly for costly in ("litellm", "packaging", "test_words") if costly in file), None)


def _needs_every_loop(item: pytest.Item) -> bool:
    """Whether this is a test's run on trio outside of the folders where each commit has it."""
    call: Any = getattr(item, "callspec", None)
    on_trio = call is not None and call.params.get("anyio_backend") == "trio"
    folders = TRIO_IN_SLOW_TESTS if item.get_closest_marker("slow") else TRIO_AT_EVERY_COMMIT
    return on_trio and item.path.relative_to(Path(__file__).parent).parts[0] not in folders


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what stays together longest, and leave the rest in the order that chance gave it.

    Runs on trio outside of those folders are left to `--every-loop`, and to who names such a test.

    But for the terminal's tests: they wait more than they work. With all workers at them at once, no core has anything to do.
    """
    if not config.option.every_loop and not any("[" in argument for argument in config.args):
        config.hook.pytest_deselected(items=[item for item in items if _needs_every_loop(item)])
        items[:] = [item for item in items if not _needs_every_loop(item)]
    waiting = [item for item in items if "tools/test_terminal_" in item.nodeid]
    others = [item for item in items if "tools/test_terminal_" not in item.nodeid]
    others.sort(key=lambda item: _costly(item.nodeid) is None)
    place = {item: at / len(part) for part in (waiting, others) for at, item in enumerate(part)}
    items.sort(key=place.__getitem__)


class ByCost(LoadScopeScheduling):
    """Each test, with all its parameters, goes to the next worker that is free; what prepares the same goes to the same.

    By the names of their files: xdist 3.8 does not get its groups to the scheduler with pytest 9.2, and says nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _costly(nodeid) or nodeid.partition("[")[0]

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget what is done, which would be counted again after every test of the worker."""
        super().mark_test_complete(node, item_index, duration)
        done = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][done].values()):
            del self.assigned_work[node][done]


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through all tests again and again."""
    gc.freeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByCost:
    """Say which tests stay together, and that those of many parameters are not to be first."""
    config.option.loadscopereorder = False
    return ByCost(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a live test that nobody asked for, or that has no key."""
    marker = item.get_closest_marker("live")
    if marker is None:
        return
    if "live" not in str(item.config.option.markexpr).split():
        pytest.skip("a real model costs money: ask for it with -m live")
    missing = [key for key in marker.args if not os.environ.get(key)]
    if missing:
        pytest.skip(f"not in the environment: {', '.join(missing)}")


MAY_BE_SKIPPED = (
    "uvicorn does not run on trio",
    "aiodocker is on asyncio only",
    "it has the loop report the lost connection",
    "needs the address ::1",
    "AGENTCORE_LONG_RUNS is not set",
)
"""What stands in the reasons of skips that nothing to be installed would change."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that would be skipped because something is not installed, where AGENTCORE_NO_SKIPS is set, as in `nox -s serve`."""
    report = yield
    if not hasattr(report, "wasxfail") and not any(reason in str(report.longrepr) for reason in MAY_BE_SKIPPED):
        _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Do the same for a whole module."""
    report = yield
    _forbid_skip(report)
    return report


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get("AGENTCORE_NO_SKIPS"):
        report.outcome = "failed"
        report.longrepr = f"This may not be skipped here: {report.longrepr}"
