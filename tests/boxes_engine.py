"""An engine of a test's own, beside the one of all tests, and a network namespace for it: it may be killed, and decoys may be beside it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).parents[1] / "scripts" / "docker-engine.sh"
_ALONE: Final = ("unshare", "--net")


class OwnEngine:
    """An engine in a network of its own, because without a bridge it removes that of others.

    Args:
        lab: The folder of all that is its own.
        image: The image that tests use.
        within: The command that runs another one in the engine's network.
        has_bridge: True if containers may have the network of that.
    """

    def __init__(self, lab: str, image: str, within: Sequence[str] = _ALONE, *, has_bridge: bool = False) -> None:
        shared = os.environ.get("DOCKER_LAB", "")
        tools = [f"{shared}/pkg/root/usr/bin", f"{shared}/pkg/root/usr/sbin"] if shared else []
        self._env = {
            "PATH": os.pathsep.join([*tools, os.environ["PATH"]]),
            "DOCKER_LAB": lab,
            "DOCKER_LAB_BRIDGE": "" if has_bridge else "none",
        }
        self._lab = lab
        self._image = image
        self._within = within

    @property
    def address(self) -> str:
        return f"unix://{self._lab}/docker.sock"

    def run(self, *arguments: str) -> None:
        subprocess.run(
            [*self._within, SCRIPT, *arguments], env=self._env, check=True, stdout=subprocess.DEVNULL, timeout=120
        )

    def kill(self) -> None:
        os.kill(int(Path(self._lab, "dockerd.pid").read_text()), signal.SIGKILL)

    def load(self, address: str) -> None:
        """Copy the image for tests from the other engine."""
        source, target = address.removeprefix("unix://"), self.address.removeprefix("unix://")
        saved = [
            "curl",
            "-fsS",
            "--unix-socket",
            source,
            f"http://d/images/{self._image}/get",
            "-o",
            f"{self._lab}/image.tar",
        ]
        loaded = ["curl", "-fsS", "--unix-socket", target, "-T", f"{self._lab}/image.tar", "-X", "POST"]
        for command in (saved, [*loaded, "-H", "Content-Type: application/x-tar", "http://d/images/load"]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)


@contextmanager
def start_engine(image: str, within: Sequence[str] = _ALONE, *, has_bridge: bool = False) -> Generator[OwnEngine]:
    """Start an engine with the image of the other one, and end it with all that is its own."""
    if os.getuid() != 0:
        pytest.skip("needs root, to start and to kill an engine")
    # Short, because the path of a socket is.
    lab = tempfile.mkdtemp(prefix="engine-")
    engine = OwnEngine(lab, image, within, has_bridge=has_bridge)
    try:
        engine.run("engine")
        engine.load(os.environ["DOCKER_HOST"])
        yield engine
    finally:
        engine.run("down")
        shutil.rmtree(lab, ignore_errors=True)


def try_decoys(within: Sequence[str], kind: str, folder: Path, **variables: str) -> dict[str, list[str]]:
    """Run the program with the decoys in a network, and return what it prints."""
    command = [*within, sys.executable, str(SCRIPT.parents[1] / "tests" / "sandbox" / "decoys_program.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    ran = subprocess.run(
        [*command, kind, str(folder)], capture_output=True, text=True, env=environment, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    shown: dict[str, list[str]] = json.loads(ran.stdout)
    return shown


@contextmanager
def make_namespace(addresses: Sequence[str]) -> Generator[Sequence[str]]:
    """Make a network namespace that has these addresses, and return the command that runs another one in it."""
    lines = ["ip link set lo up", *(f"ip addr add {each}/32 dev lo" for each in addresses), "echo up; exec sleep 1000"]
    command = ["unshare", "--net", "sh", "-ec", "\n".join(lines)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"up\n"
            yield ("nsenter", f"--net=/proc/{holder.pid}/ns/net")
        finally:
            holder.kill()
