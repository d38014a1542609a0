"""Named attempts to get out of a bubblewrap box. What a command may do in the project's folder is no escape."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from boxes_bubblewrap import needs_bubblewrap
from boxes_engine import make_namespace, try_decoys
from boxes_escapes import ADDRESSES, ATTEMPTS, GATEWAYS, NETWORK, SHOWS, filled

pytestmark = needs_bubblewrap


async def test_no_attempt_gets_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THIS_PROGRAM", "secret")
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    escaped: list[str] = []
    async with await anyio.open_process(["sleep", "1000"]) as beside:
        try:
            async with BubblewrapWorkspace(project) as workspace:
                for attempt in ATTEMPTS:
                    script = filled(attempt, outside, project, beside.pid)
                    result = await workspace.run(["sh", "-c", script])
                    if SHOWS in result.stdout or "secret" in result.stdout:
                        escaped.append(f"{attempt.name}: {result.stdout}")
            assert escaped == []
            assert beside.returncode is None
        finally:
            beside.kill()
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]
    assert (outside / "secret").read_text() == "secret\n"
    assert (outside / "secret").stat().st_nlink == 1


async def test_no_command_finds_a_process_with_the_stream_in_it_that_it_could_change(tmp_path: Path) -> None:
    # With it, it would read the variables of other commands and answer for the helper.
    line = """
import os
def names(pid):
    try:
        return {os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")}
    except PermissionError:
        return None
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) != os.getpid():
        print(pid, sorted(names(pid) or ()) if names(pid) is not None else "closed")
"""
    async with BubblewrapWorkspace(tmp_path) as workspace:
        shown = (await workspace.run(["python3", "-c", line])).stdout
    first, helper = shown.splitlines()
    assert first.startswith("1 ['/dev/null'")
    # What is left of sockets is the one that is open as long as it lives.
    assert first.count("socket:") == 1
    assert helper.endswith(" closed")


def test_the_attempts_have_names_of_their_own() -> None:
    names = [attempt.name for attempt in (*ATTEMPTS, *NETWORK)]
    assert len(names) == len(set(names))


def test_most_attempts_work_where_nothing_confines(tmp_path: Path) -> None:
    # Else they would show nothing.
    for attempt in ATTEMPTS:
        if attempt.name in {"read a file outside", "write through a link in the project", "a setuid program", "keyctl"}:
            (tmp_path / "secret").write_text("secret\n")
            arguments = ["sh", "-c", filled(attempt, tmp_path, tmp_path, 0)]
            ran = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, check=False)
            assert SHOWS in ran.stdout, attempt.name


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2: apt install iproute2"
)
def test_no_address_of_the_machine_is_reached(tmp_path: Path) -> None:
    # The machine is a network namespace of the test, with decoys at its addresses.
    addresses = [each.replace("{gateway}", GATEWAYS["bubblewrap"]) for each in ADDRESSES.values()]
    with make_namespace(addresses) as within:
        shown = try_decoys(within, "bubblewrap", tmp_path)
    assert (shown["none"], shown["touched by none"]) == ([], [])
    # With the network of the machine, each of them is touched.
    hosts = sorted(addresses)
    assert set(shown["touched by full"]) == {
        "abstract",
        "stream 127.0.0.1",
        f"name {GATEWAYS['bubblewrap']}",
        *(f"{way} {host}" for way in ("stream", "datagram") for host in hosts),
    }
