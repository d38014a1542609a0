"""Going back to a box that was made before.

Its id comes from a log or from a program, and a log may come from anywhere. The labels of what is there come from who made it; so they say
whose it is, and what it was allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentcore.errors import WorkspaceError
from agentcore_sandbox.docker import labels
from agentcore_sandbox.docker.errors import NotThere
from agentcore_sandbox.docker.facts import ImageFacts, read_image_facts
from agentcore_sandbox.docker.options import DockerOptions, parse_options

if TYPE_CHECKING:
    from agentcore_sandbox.docker.engine import Engine


@dataclass(frozen=True, slots=True)
class Left:
    """The remains of a box."""

    kind: Literal["container", "volume"]
    image: ImageFacts | None
    """The image of the container, or None where only the volume is left."""


async def look_for(engine: Engine, box: str, owner: str, options: DockerOptions) -> Left | None:
    """Return what is there of a box, or None.

    Raises:
        WorkspaceError: It belongs to somebody else, was made otherwise, or cannot be used as it is.
    """
    name = labels.name_of(box)
    try:
        found = await engine.inspect_container(name)
        _check(name, found["Config"].get("Labels") or {}, box, owner, options)
        if found["State"].get("Paused"):
            raise WorkspaceError(f"{name} is paused: run `docker unpause {name}`.")
        image = read_image_facts({"Id": found["Image"], "Config": found["Config"]})
        return Left("container", image)
    except NotThere:
        pass
    try:
        volume = await engine.inspect_volume(f"{name}-own")
    except NotThere:
        return None
    _check(name, volume.get("Labels") or {}, box, owner, options)
    return Left("volume", None)


def _check(name: str, found: Mapping[str, Any], box: str, owner: str, options: DockerOptions) -> None:
    theirs = found.get(labels.OWNER)
    if found.get(labels.BOX) != box or theirs != owner:
        raise WorkspaceError(
            f"{name} belongs to another owner ({theirs!r}, and this is {owner!r}). Leave out its id for a box of your own."
        )
    if found.get(labels.FINGERPRINT) != labels.fingerprint_of(options.bounds()):
        raise WorkspaceError(
            f"{name} was made with another mount, network, user or limits than are asked for now. Write those that it was made with, or"
            " leave out its id for a new box."
        )


def check_log(options: DockerOptions, name: str | None) -> None:
    """Refuse what a log alone may not ask of a new box.

    Args:
        options: What it asks for.
        name: The box that it was, which is gone; None if the log has none.

    Raises:
        WorkspaceError: The message says what the program has to pass.
    """
    usual = parse_options(image=options.image)
    looser: dict[str, Any] = {
        "network": options.network if options.network != "none" else None,
        "runtime": options.runtime,
        "user": None if options.user is None else "{}:{}".format(*options.user),
    }
    for limit in ("memory", "cpus", "pids", "tmp_size"):
        value = getattr(options, limit)
        looser[limit] = value if value > getattr(usual, limit) else None
    asked = "".join(f", {key}={value!r}" for key, value in looser.items() if value is not None)
    if asked:
        what = "the log names no box" if name is None else f"the box {name} is gone"
        raise WorkspaceError(
            f"{what}, and a log alone does not decide what a new one may do. Pass"
            f" workspace=DockerWorkspace({options.image!r}, mount={options.mount!r}{asked})"
        )
