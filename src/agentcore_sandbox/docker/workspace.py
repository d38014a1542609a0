"""`DockerWorkspace`: a container as a workspace.

Above: tools, conversations, the command line. Below: `BoxWorkspace`, which does everything, and `DockerBox`.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Final, Self, final

from pydantic import JsonValue

from agentcore._arguments import (
    FLAG,
    FOLDER,
    NUMBER,
    SECONDS,
    TEXT,
    TEXT_BY_NAME,
    WHOLE_NUMBER,
    checked,
    instance_of,
    optional,
)
from agentcore.errors import WorkspaceError
from agentcore_sandbox.bootstrap import BOOT_COMMAND
from agentcore_sandbox.box import ReportProgress
from agentcore_sandbox.docker.box import DockerBox
from agentcore_sandbox.docker.labels import check_free
from agentcore_sandbox.docker.options import RECORDED, check_digest, check_id, parse_options
from agentcore_sandbox.network.policy import NetworkPolicy, restore_policy
from agentcore_sandbox.workspace import BoxWorkspace

_SIZE: Final = instance_of(int, str, description="a size, as '2g' or a number of bytes")
_USER: Final = instance_of(int, str, description="ids, as '1000:1000'")


@final
class DockerWorkspace(BoxWorkspace):
    """A container of the Docker engine on this machine. Files and commands are in there, and can do no harm here.

    Commands run as an ordinary user without capabilities, below a root that is read-only, without a network, and with limits of memory,
    processors and processes. They see nothing of this program's environment. Which protections a workspace has less of is in its record.

    With `mount` they work in a folder of this machine, at /workspace, as the user who owns it; so what they write belongs to who owned the
    folder, and whoever runs it here runs it unprotected: a script, a git hook, a Makefile. A folder of root's is refused, unless
    `user="0:0"` asks for root inside (without capabilities all the same). With `copy` they work in a copy of a folder; `download` brings it
    back. With neither, the folder is empty.

    The container is removed when the workspace is left, or stopped with `keep`. If this program is killed, the container stops by itself
    after `idle_seconds`; `agentcore sandbox prune` then removes it. A conversation that is opened again goes back to its container. If that is gone
    and worked in a mounted folder, it gets a new one.

    It runs on asyncio only. The engine is the one at `DOCKER_HOST` (unix:// or tcp:// on this machine), or at the usual socket. Images that
    need a login have to be pulled before.

    Args:
        image: The image: any with sh and Python 3.7 or newer.
        mount: The absolute path of a folder to work in. Home folders, system folders, sockets and the like are refused.
        copy: A folder to work in a copy of.
        network: "none"; `Allow("example.org", ...)`, through a proxy; or "full": whatever this machine reaches, services on it included.
        memory: How much memory all of it may use, /tmp included; there is no swap.
        cpus: How many processors it may use.
        pids: How many processes and threads there may be.
        disk: How much each of its volumes may hold; most engines cannot limit that, and say so.
        user: The ids of user and group inside, in place of 1000:1000 or of who owns the mounted folder.
        keep: Stop the container in the end, and do not remove it.
        pull: Pull the image if it is "missing", "never" or "always".
        runtime: Another runtime that the engine has, as "runsc".
        env: Variables that all commands get; they are not visible at the engine.
        idle_seconds: After how long the container stops if nobody is there.
        tmp_size: How much /tmp may hold.
        labels: Whose it is, for lists: "owner" (by default this user), "conversation" (by default the one that enters it).
        box: The id of a container that was kept (`record().params["box"]`), to go back to it.
        on_progress: Is awaited with each `Progress` while it starts.

    Raises:
        ValueError: An argument cannot be used; the message says what to write instead.
        TypeError: An argument is not what it has to be.
    """

    @checked(
        image=TEXT,
        mount=optional(FOLDER),
        copy=optional(FOLDER),
        memory=_SIZE,
        cpus=NUMBER,
        pids=WHOLE_NUMBER,
        disk=optional(_SIZE),
        user=optional(_USER),
        keep=FLAG,
        runtime=optional(TEXT),
        env=optional(TEXT_BY_NAME),
        idle_seconds=SECONDS,
        tmp_size=_SIZE,
        labels=optional(TEXT_BY_NAME),
        box=optional(TEXT),
    )
    def __init__(
        self,
        image: str,
        *,
        mount: str | PathLike[str] | None = None,
        copy: str | PathLike[str] | None = None,
        network: NetworkPolicy | str = "none",
        memory: int | str = "2g",
        cpus: float = 2,
        pids: int = 512,
        disk: int | str | None = None,
        user: int | str | None = None,
        keep: bool = False,
        pull: str = "missing",
        runtime: str | None = None,
        env: Mapping[str, str] | None = None,
        idle_seconds: float = 1800,
        tmp_size: int | str = "512m",
        labels: Mapping[str, str] | None = None,
        box: str | None = None,
        on_progress: ReportProgress | None = None,
    ) -> None:
        options = parse_options(
            image=image,
            mount=mount,
            copy=copy,
            network=network,
            memory=memory,
            cpus=cpus,
            pids=pids,
            disk=disk,
            user=user,
            keep=keep,
            pull=pull,
            runtime=runtime,
            env=env,
            idle_seconds=idle_seconds,
            tmp_size=tmp_size,
        )
        check_free(labels or {})
        self._copy = options.copy
        self._docker = DockerBox(
            options,
            command=BOOT_COMMAND,
            labels=labels,
            box=None if box is None else check_id(box),
        )
        super().__init__(self._docker, network=options.network, on_progress=on_progress)

    @property
    def loosened(self) -> tuple[str, ...]:
        """One sentence for each protection that it has less of than the default, and for each limit that is not kept."""
        return self._docker.spec.loosened

    def label(self, conversation: str, epoch: int) -> None:
        """Label what is made with a conversation, where the program did not, and with the number of its opening."""
        self._docker.label({"conversation": conversation, "epoch": str(epoch)})

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        if self._copy is not None and self._docker.is_new:
            try:
                await self.upload(self._copy, self.root)
            except BaseException:
                await self.__aexit__(None, None, None)  # noqa: ASYNC102 bounded there, and it has to be left
                raise
        return self

    @classmethod
    def from_record(
        cls,
        image: str,
        *,
        box: str | None = None,
        digest: str | None = None,
        network: JsonValue = "none",
        env: object = None,
        loosened: object = None,  # noqa: ARG003 - for people who read the log
        **options: Any,
    ) -> Self:
        """Make a recorded one again: its container, if that is there.

        A log may come from anywhere. So nothing is pulled for it; a container is used only if its labels say that it is this user's and was made
        just so; and a new one over the same folder is made only without a network, as that folder's owner, with no more than the usual limits.

        Raises:
            WorkspaceError: It had variables, whose values are not recorded.
            ValueError: It cannot be the record of a `DockerWorkspace`.
        """
        if env:
            raise WorkspaceError("the values of its variables are not recorded, so pass the workspace with its env=")
        if strange := [name for name in options if name not in RECORDED]:
            # With copy= a log could read a folder of this machine, and with labels= it could name another owner's box.
            raise ValueError(f"the record of a DockerWorkspace has no {', '.join(map(repr, strange))}")
        made = cls(image, box=box, network=restore_policy(network), **options)
        made._docker.distrust(None if digest is None else check_digest(digest))
        return made
