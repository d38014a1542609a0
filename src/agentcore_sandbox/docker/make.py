"""Making a box, and removing it: a container, and the volumes with its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
from anyio.to_thread import run_sync

from agentcore.errors import WorkspaceError
from agentcore_sandbox.docker.config import (
    NO_PYTHON,
    NO_SHELL,
    container_config,
    first_command,
    make_folders,
    preparing_config,
    volumes_of,
)
from agentcore_sandbox.docker.errors import EngineError, EngineUnreachable
from agentcore_sandbox.docker.facts import ImageFacts
from agentcore_sandbox.docker.mounts import Placed
from agentcore_sandbox.docker.options import DockerOptions

if TYPE_CHECKING:
    from agentcore_sandbox.docker.engine import Engine

MAKE_SECONDS: Final = 60.0
_REMOVE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A box that is to be made."""

    name: str
    options: DockerOptions
    placed: Placed
    image: ImageFacts
    labels: Mapping[str, str]


async def make(engine: Engine, plan: Plan, *, volumes_are_there: bool) -> None:
    """Make the box and start it. What was made is not removed if this fails.

    Raises:
        WorkspaceError: It cannot be made.
    """
    try:
        with anyio.fail_after(MAKE_SECONDS):
            volumes = volumes_of(plan.name, plan.placed)
            if not volumes_are_there:
                await _make_volumes(engine, plan, volumes)
            config = container_config(
                plan.options,
                engine.facts,
                plan.placed,
                image=plan.image.digest,
                labels=plan.labels,
                volumes=volumes,
                command=await run_sync(first_command, plan.options.idle_seconds),
            )
            await engine.create_container(plan.name, config)
            await start(engine, plan.name, plan.options.image)
    except TimeoutError as error:
        raise EngineUnreachable(
            f"The Docker engine took more than {MAKE_SECONDS:.0f} s to make a container."
        ) from error


async def _make_volumes(engine: Engine, plan: Plan, volumes: Mapping[str, str]) -> None:
    disk = plan.options.disk
    for volume in volumes:
        try:
            await engine.create_volume(volume, plan.labels, size=disk)
        except EngineError as error:
            if disk is None or "quota" not in str(error):
                raise
            raise WorkspaceError(
                f"disk={disk} cannot be kept by this engine: its storage ({engine.facts.driver}) has no quotas here ({error})."
                " Leave disk= out, or put the engine's folder on xfs that is mounted with pquota."
            ) from error
    preparing = preparing_name(plan.name)
    await engine.create_container(preparing, preparing_config(plan.image.digest, plan.labels, volumes))
    await engine.put_archive(preparing, make_folders(plan.placed))
    await engine.remove_container(preparing)


async def start(engine: Engine, name: str, image: str) -> None:
    """Start the container of a box.

    Raises:
        WorkspaceError: Nothing of ours can run in it.
    """
    try:
        await engine.start_container(name)
    except EngineUnreachable:
        raise
    except EngineError as error:
        if any(each in str(error) for each in NO_SHELL):
            raise WorkspaceError(
                f"The image {image!r} has no shell, and a box needs sh and Python: choose an image with both, as python:3.12-slim."
            ) from error
        raise WorkspaceError(f"A container of {image!r} could not be started: {error}") from error
    state = (await engine.inspect_container(name))["State"]
    if state.get("Running"):
        return
    shown = (await engine.read_logs(name, lines=5)).strip()
    if NO_PYTHON in shown:
        raise WorkspaceError(
            f"The image {image!r} has no Python, and a box needs one (3.7 or newer). Add it in a Dockerfile, as in"
            f" `FROM {image}` and `RUN apt-get update && apt-get install -y python3-minimal`."
        )
    code = state.get("ExitCode")
    raise WorkspaceError(
        f"A container of {image!r} ended at once with exit code {code}: {shown or 'it wrote nothing'}."
    )


def preparing_name(name: str) -> str:
    """Return the name of the container that prepares the volumes of a box."""
    return f"{name}-preparing"


async def remove(engine: Engine, name: str, *, keep_volumes: bool = False) -> None:
    """Remove all that belongs to a box; parts of it may be gone already.

    Raises:
        EngineError: The engine does not answer or cannot remove it.
    """
    try:
        with anyio.fail_after(_REMOVE_SECONDS):
            await engine.remove_container(preparing_name(name))
            await engine.remove_container(name)
            if not keep_volumes:
                for volume in (f"{name}-own", f"{name}-work"):
                    await engine.remove_volume(volume)
    except TimeoutError as error:
        raise EngineUnreachable(
            f"The Docker engine took more than {_REMOVE_SECONDS:.0f} s to remove {name}."
        ) from error
