"""Getting the image of a box: from the engine, or pulled from its registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentcore.errors import WorkspaceError
from agentcore_sandbox.box import Progress, ReportProgress
from agentcore_sandbox.docker.errors import EngineError, EngineUnreachable
from agentcore_sandbox.docker.facts import ImageFacts
from agentcore_sandbox.docker.options import PullPolicy

if TYPE_CHECKING:
    from agentcore_sandbox.docker.engine import Engine

_MOST_NAMES = 6


async def find_image(engine: Engine, reference: str, *, pull: PullPolicy, progress: ReportProgress) -> ImageFacts:
    """Return the image, and pull it first if the policy says so.

    Raises:
        WorkspaceError: It is not here, and may or can not be pulled.
    """
    found = None if pull == "always" else await engine.find_image(reference)
    if found is None and pull == "never":
        raise WorkspaceError(
            f"There is no image {reference!r} here, and it may not be pulled (pull='never'). Run `docker pull {reference}`{await _others(engine)}."
        )
    if found is None:
        await _pull(engine, reference, progress)
        found = await engine.find_image(reference)
    if found is None:
        raise WorkspaceError(
            f"The image {reference!r} was pulled, and is not here all the same. Check its name and tag."
        )
    return found


async def _pull(engine: Engine, reference: str, progress: ReportProgress) -> None:
    layers: dict[str, tuple[int, int]] = {}

    async def see(event: Mapping[str, Any]) -> None:
        layer = str(event.get("id") or "")
        detail: Mapping[str, Any] = event.get("progressDetail") or {}
        if event.get("status") == "Downloading" and detail.get("total"):
            layers[layer] = (int(detail.get("current") or 0), int(detail["total"]))
        sizes = layers.values()
        await progress(
            Progress(
                phase="pull",
                text=f"{layer} {event.get('status') or ''}".strip(),
                done=sum(done for done, _ in sizes) if layers else None,
                total=sum(total for _, total in sizes) if layers else None,
            )
        )

    try:
        await engine.pull(reference, see)
    except EngineUnreachable:
        raise
    except EngineError as error:
        raise WorkspaceError(
            f"The image {reference!r} is not here and could not be pulled: {str(error).rstrip('. ')}. Check the name and the network; an image of a registry"
            f" that wants a login has to be pulled before, with `docker pull {reference}`{await _others(engine)}."
        ) from error


async def _others(engine: Engine) -> str:
    images = await engine.list_images()
    shown = ", ".join(repr(name) for name in images[:_MOST_NAMES])
    more = f" and {len(images) - _MOST_NAMES} more" if len(images) > _MOST_NAMES else ""
    return f", or write the name of one that is here: {shown}{more}" if images else ""
