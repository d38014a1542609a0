"""Named attempts to get out of a bubblewrap box. What a command may do in the project's folder is no escape."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from boxes_bubblewrap import needs_bubblewrap
from boxes_escapes import ATTEMPTS, SHOWS, filled

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
    names = [attempt.name for attempt in ATTEMPTS]
    assert len(names) == len(set(names))


def test_most_attempts_work_where_nothing_confines(tmp_path: Path) -> None:
    # Else they would show nothing.
    for attempt in ATTEMPTS:
        if attempt.name in {"read a file outside", "write through a link in the project", "a setuid program", "keyctl"}:
            (tmp_path / "secret").write_text("secret\n")
            arguments = ["sh", "-c", filled(attempt, tmp_path, tmp_path, 0)]
            ran = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, check=False)
            assert SHOWS in ran.stdout, attempt.name


_WITH_DECOYS = """
import socket, sys, threading
import anyio
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace

touched = []
ADDRESSES = ("169.254.169.254", "172.17.0.1", "10.0.0.1", "192.168.1.1", "100.100.100.200", "127.0.0.1")
LOOK = '''
import socket, sys
for address in sys.argv[1:]:
    for kind, port in ((socket.SOCK_STREAM, 8080), (socket.SOCK_DGRAM, 5353)):
        try:
            made = socket.socket(socket.AF_INET, kind)
            made.settimeout(1)
            made.connect((address, port))
            made.send(b"hello")
        except OSError as error:
            print(address, kind, error.strerror)
try:
    made = socket.socket(socket.AF_UNIX)
    made.connect("\\\\0agentcore-decoy")
    made.send(b"hello")
except OSError as error:
    print("abstract", error.strerror)
'''

def serve(made):
    while True:
        if made.type == socket.SOCK_DGRAM:
            touched.append(made.recvfrom(10))
        else:
            made.accept()[0].close()
            touched.append(made.getsockname())
        done.release()

done = threading.Semaphore(0)
for address in ADDRESSES:
    stream = socket.create_server((address, 8080))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((address, 5353))
    for made in (stream, datagrams):
        threading.Thread(target=serve, args=(made,), daemon=True).start()
hidden = socket.socket(socket.AF_UNIX)
hidden.bind("\\0agentcore-decoy")
hidden.listen()
threading.Thread(target=serve, args=(hidden,), daemon=True).start()

async def main(folder, network):
    async with BubblewrapWorkspace(folder, network=network) as workspace:
        return await workspace.run(["python3", "-c", LOOK, *ADDRESSES])

result = anyio.run(main, sys.argv[1], "none")
print(result.stdout, result.stderr)
print("touched from a box:", len(touched))
anyio.run(main, sys.argv[1], "full")
for _ in range(2 * len(ADDRESSES) + 1):
    done.acquire(timeout=60)
print("touched with the network:", len(touched))
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2: apt install iproute2"
)
def test_no_address_of_the_machine_is_reached(tmp_path: Path) -> None:
    # The machine is a network namespace of the test, with decoys at its addresses.
    addresses = "169.254.169.254 172.17.0.1 10.0.0.1 192.168.1.1 100.100.100.200"
    line = f'ip link set lo up; for each in {addresses}; do ip addr add $each/32 dev lo; done; exec "$@"'
    arguments = ["unshare", "--net", "sh", "-c", line, "sh", sys.executable, "-c", _WITH_DECOYS, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert "touched from a box: 0\n" in ran.stdout, ran.stdout + ran.stderr
    # Loopback is the box's own; the other addresses have no way at all.
    assert ran.stdout.count("Network is unreachable") == 10
    assert "touched with the network: 13\n" in ran.stdout, ran.stdout
