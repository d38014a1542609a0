"""After a crash: what is said of a command or a program that was cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore_tools import run_tool, terminal_tool
from opened_tool import reconcile


@pytest.mark.parametrize("left", [True, False])
async def test_what_still_runs_of_a_session_is_named_and_where_its_output_is(tmp_path: Path, left: bool) -> None:
    marks = {"AGENTCORE_TERMINAL": "c1/server%201;" if left else "c1/server;"}
    kept = {"ev_1-terminal.txt": "listening\n"} if left else {}
    told, pid, folder = await reconcile(terminal_tool(), tmp_path, marks, kept, command="serve", session="server 1")
    assert (told.problem, told.exit_code, told.is_error, told.new_shell) == ("cut_off", None, True, True)
    assert told.text == (f"[Still running: {pid} (sleep 1000).]" if left else "")
    assert told.full_output_path == (f"{folder}/ev_1-terminal.txt" if left else None)
    assert "is not known" in str(told.to_content())
    assert (str(told.full_output_path) in str(told.to_content())) is left


async def test_a_wait_that_was_cut_off_has_lost_nothing(tmp_path: Path) -> None:
    told, _, _ = await reconcile(terminal_tool(), tmp_path, {}, {}, command="")
    assert (told.problem, told.is_error) == ("nothing_lost", False)


@pytest.mark.parametrize("left", [True, False])
async def test_what_still_runs_of_a_program_is_named_and_where_its_output_is(tmp_path: Path, left: bool) -> None:
    marks = {"AGENTCORE_RUN": "c1/ev_1;" if left else "c1/ev_11;"}
    told, pid, folder = await reconcile(
        run_tool(), tmp_path, marks, {"ev_1-stdout.txt": "half of it"} if left else {}, command="make"
    )
    assert (told.problem, told.exit_code, told.is_error) == ("cut_off", None, True)
    assert told.stdout == (f"[Still running: {pid} (sleep 1000).]" if left else "")
    assert told.stdout_path == (f"{folder}/ev_1-stdout.txt" if left else None)
    assert "not known" in str(told.to_content())
