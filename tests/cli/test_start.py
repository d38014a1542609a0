"""Ctrl-C before there is anything to interrupt: one line, and the exit code of the signal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from rounds import some_quick

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

PROGRAM = """
import asyncio, os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        act("import " + name)

def act(what, *_):
    if what in MOMENTS:
        MOMENTS.remove(what)  # a thread may come to the same again while the program ends
        os.kill(os.getpid(), signal.SIGINT)

def shut_down(loop, begin=asyncio.BaseEventLoop.shutdown_asyncgens):
    coroutine = begin(loop)
    act("the event loop closes")
    return coroutine

asyncio.BaseEventLoop.shutdown_asyncgens = shut_down
sys.meta_path.insert(0, Interrupt())
sys.addaudithook(act)
from agentcore.cli import main
sys.argv[1:] = ["demo"]
main()
"""


@pytest.mark.parametrize(
    ("moments", "says"),
    some_quick(
        [
            (("import typer",), "Stopped before the start."),
            (("import agentcore.cli.process",), "Stopped before the start."),
            (("import agentcore_tools",), "Stopped before the start."),
            (("os.mkdir",), "Stopped."),
            (("os.mkdir", "the event loop closes"), "Stopped."),
            (("subprocess.Popen",), "Stopped."),  # the tests of the demo's project, before the agent is asked
        ],
        3,
    ),
)
def test_ctrl_c_before_the_first_event_ends_in_one_line(cli: Cli, moments: tuple[str, ...], says: str) -> None:
    ended = cli.spawn(program=[sys.executable, "-c", f"MOMENTS = {list(moments)!r}\n{PROGRAM}"])
    assert (ended.code, ended.err) == (130, f"{says}\n")
