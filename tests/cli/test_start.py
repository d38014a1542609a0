"""Ctrl-C before there is anything to interrupt: one line, and the exit code of the signal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

PROGRAM = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        act("import " + name)

def act(what, *_):
    if what == MOMENT:
        os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.addaudithook(act)
from agentcore.cli import main
sys.argv[1:] = ["demo"]
main()
"""


@pytest.mark.parametrize(
    ("moment", "says"),
    [
        ("import typer", "Stopped before the start."),
        ("import agentcore.cli.process", "Stopped before the start."),
        ("import agentcore_tools", "Stopped before the start."),
        ("subprocess.Popen", "Stopped."),  # the tests of the demo's project, before the agent is asked
    ],
)
def test_ctrl_c_before_the_first_event_ends_in_one_line(cli: Cli, moment: str, says: str) -> None:
    ended = cli.spawn(program=[sys.executable, "-c", f"MOMENT = {moment!r}\n{PROGRAM}"])
    assert (ended.code, ended.err) == (130, f"{says}\n")
