"""A program that works in a container until it is killed: `python docker_program.py IMAGE OWNER FOLDER`."""

from __future__ import annotations

import sys

import anyio

from agentcore_sandbox import DockerWorkspace


async def main(image: str, owner: str, folder: str) -> None:
    async with DockerWorkspace(image, mount=folder, user="0:0", labels={"owner": owner}, idle_seconds=0.5) as workspace:
        async with workspace.open_process("echo here >>file; sleep 1000") as process:
            while (await workspace.stat("file")) is None:
                await anyio.sleep(0.02)
            print(workspace.record().params["box"], flush=True)
            await process.wait()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
