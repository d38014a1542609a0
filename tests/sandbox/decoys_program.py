"""Tries each way to an address of the machine from a box, where decoys are at them: in a network namespace of the test.

Arguments: the kind of box, and a folder. Prints JSON: which attempts worked, and which decoys were touched, in a box and in one that has
the network of the machine.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path

import anyio

from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_escapes import ABSTRACT, ADDRESSES, DATAGRAM_PORT, GATEWAYS, NETWORK, SHOWS, STREAM_PORT, filled

_LAST_SECONDS = 1.0
"""How long to wait for a datagram that is on its way; the decoys take it at once."""


class Decoys:
    """Servers at addresses of this machine, which note whether somebody comes."""

    def __init__(self, gateway: str) -> None:
        self.touched: set[str] = set()
        hosts = {"127.0.0.1", *(address.replace("{gateway}", gateway) for address in ADDRESSES.values())}
        for host in sorted(hosts):
            self._serve(f"stream {host}", socket.create_server((host, STREAM_PORT)))
            for port in (DATAGRAM_PORT, 53):
                made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                made.bind((host, port))
                self._serve(f"datagram {host}" if port != 53 else f"name {host}", made)
        hidden = socket.socket(socket.AF_UNIX)
        hidden.bind(f"\0{ABSTRACT}")
        hidden.listen()
        self._serve("abstract", hidden)

    def _serve(self, name: str, made: socket.socket) -> None:
        threading.Thread(target=self._take, args=(name, made), daemon=True).start()

    def _take(self, name: str, made: socket.socket) -> None:
        while True:
            if made.type == socket.SOCK_DGRAM:
                made.recvfrom(100)
            else:
                made.accept()[0].close()
            self.touched.add(name)


def open_box(kind: str, folder: Path, network: str) -> BoxWorkspace:
    if kind == "docker":
        return DockerWorkspace(os.environ["TEST_IMAGE"], network=network, labels={"owner": "tests of decoys"})
    return BubblewrapWorkspace(folder, network="full" if network == "full" else "none")


async def try_all(kind: str, folder: Path, network: str) -> list[str]:
    worked: list[str] = []
    async with open_box(kind, folder, network) as workspace:
        for attempt in NETWORK:
            script = filled(attempt, folder, folder, 0).replace("{gateway}", GATEWAYS[kind])
            if SHOWS in (await workspace.run(["sh", "-c", script])).stdout:
                worked.append(attempt.name)
        await anyio.sleep(_LAST_SECONDS)
    return worked


def main(kind: str, folder: Path) -> None:
    # The gateway's address is that of the bridge, which the engine made.
    decoys = Decoys(GATEWAYS[kind])
    shown: dict[str, list[str]] = {}
    for network in ("none", "full"):
        decoys.touched.clear()
        shown[network] = anyio.run(try_all, kind, folder, network)
        shown[f"touched by {network}"] = sorted(decoys.touched)
    print(json.dumps(shown))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
