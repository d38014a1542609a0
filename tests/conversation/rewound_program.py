"""A program that is killed when the files of a rewind are about to be brought back, or when a part of them is back."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio

from agentcore import Conversation, FileStore, LocalWorkspace
from agentcore.testing import say
from talks import scripted


class Dying(LocalWorkspace):  # pyright: ignore[reportGeneralTypeIssues]
    async def run(self, command: Any, **options: Any) -> Any:
        if b'"restore"' in (options.get("stdin") or b""):
            if sys.argv[2] == "after":
                await super().run(command, **options)
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().run(command, **options)


async def main(folder: Path) -> None:
    project = folder / "project"
    project.mkdir()
    (project / "a").write_text("1")
    store = FileStore(folder / "store")
    async with Conversation(scripted([say("one")]), Dying(project), store=store, id="c") as conversation:
        result = await conversation.run("begin")
        await conversation.checkpoint()
        (project / "a").write_text("2")
        (project / "b").write_text("2")
        await conversation.rewind(result.last_seq, files=True)


anyio.run(main, Path(sys.argv[1]))
