"""After a crash: what is said of a command that was cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from agentcore.secrets import SecretRegistry
from agentcore.tools import ToolContext
from agentcore.workspace import LocalWorkspace
from agentcore_tools import TerminalAction, TerminalObservation, terminal_tool
from opened_tool import KeepingHost


async def asked(folder: Path, left: str | None = None, kept: bytes | None = None, **action: Any) -> TerminalObservation:
    """Reconcile an action in a workspace where a process may have been left, and some output."""
    tool = terminal_tool()
    assert tool.reconcile is not None
    with anyio.fail_after(60):
        async with LocalWorkspace(folder) as workspace:
            context = ToolContext(
                workspace=workspace,
                secrets=SecretRegistry(),
                conversation_id="c1",
                action_id="ev_1",
                call_id="call_1",
                tool_name="terminal",
                host=KeepingHost(workspace, SecretRegistry()),
            )
            private = await workspace.private_folder("c1")
            try:
                if kept is not None:
                    await workspace.write(f"{private}/ev_1-terminal.txt", kept)
                async with workspace.open_process(
                    "exec sleep 1000", env={} if left is None else {"AGENTCORE_TERMINAL": left}
                ):
                    observation = await tool.reconcile(TerminalAction(**action), context)
            finally:
                await workspace.remove_private_folder("c1")
    assert observation is not None
    return observation


async def test_that_nothing_of_a_command_runs_is_said_and_that_its_end_is_not_known(tmp_path: Path) -> None:
    told = await asked(tmp_path, "other/default;", command="make")
    assert (told.problem, told.text, told.is_error, told.exit_code) == ("cut_off", "", True, None)
    assert told.new_shell
    assert "is not known" in str(told.to_content())


async def test_what_still_runs_of_a_session_is_named_and_where_its_output_is(tmp_path: Path) -> None:
    told = await asked(tmp_path, "c1/server%201;", b"listening\n", command="serve", session="server 1")
    assert "sleep 1000" in told.text
    assert told.full_output_path is not None
    assert told.full_output_path in str(told.to_content())
    other = await asked(tmp_path, "c1/server;", command="make")
    assert other.text == ""


async def test_a_wait_that_was_cut_off_has_lost_nothing(tmp_path: Path) -> None:
    told = await asked(tmp_path, command="")
    assert (told.problem, told.is_error) == ("nothing_lost", False)
