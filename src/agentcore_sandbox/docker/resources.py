"""The boxes at the engine: listing them, removing what is not in use, logs, and a shell in one.

For the command line. All of it goes by labels, so it finds what programs left behind that were killed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agentcore._value import Value
from agentcore.errors import WorkspaceError
from agentcore_sandbox.docker import labels as names
from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.docker.errors import EngineError, NotThere
from agentcore_sandbox.docker.make import preparing_name, remove
from agentcore_sandbox.docker.options import ROOT, check_id

if TYPE_CHECKING:
    from agentcore_sandbox.docker.engine import Engine, OpenExec

_SHELL: Final = ("sh", "-c", "cd /workspace; export HOME=/agentcore/home; exec bash || exec sh")


class BoxInfo(Value):
    """A box at the engine."""

    id: str
    owner: str
    conversation: str
    image: str
    mount: str | None
    """The folder of this machine that it works in."""
    state: str
    """Of its container, as "running" or "exited"; "gone" if only its volumes are left."""
    in_use: bool
    """True if a helper or a shell is in it."""
    created: datetime
    expires: datetime | None
    """When it may be removed if it is not in use. None: it is kept."""

    def is_stale(self, now: datetime) -> bool:
        """Return True if it is not in use, and has expired."""
        return not self.in_use and self.state != "running" and self.expires is not None and self.expires <= now


async def list_boxes() -> tuple[BoxInfo, ...]:
    """Return all boxes that the engine has, the oldest first, those of other owners too.

    Raises:
        WorkspaceError: The engine does not answer.
    """
    async with open_engine() as engine:
        return await _list(engine)


async def prune(*, expired_only: bool = True, owner: str | None = None) -> tuple[BoxInfo, ...]:
    """Remove boxes that are not in use, with their volumes, and return them. One with a helper or a shell in it is never removed.

    Args:
        expired_only: Leave those that are kept, those that run, and those that have not expired. Otherwise every box goes that is not in
            use at that moment.
        owner: Whose boxes; by default those of this user.

    Raises:
        WorkspaceError: The engine does not answer.
    """
    async with open_engine() as engine:
        now = datetime.now(UTC)
        whose = owner or names.default_owner()
        boxes = [box for box in await _list(engine) if box.owner == whose]
        removed: list[BoxInfo] = []
        for box in boxes:
            # Asked again, because removing those before it took its time.
            if (box.is_stale(now) if expired_only else not box.in_use) and not await _is_in_use(engine, box.id):
                await remove(engine, names.name_of(box.id))
                removed.append(box)
        return tuple(removed)


async def remove_box(box: str) -> None:
    """Remove one box with its volumes; it is fine if it is gone.

    Raises:
        WorkspaceError: It is another owner's, or the engine does not answer.
    """
    async with open_engine() as engine:
        name = names.name_of(check_id(box))
        labels: Mapping[str, str] = {}
        with suppress(NotThere):
            labels = (await engine.inspect_volume(f"{name}-own")).get("Labels") or {}
        with suppress(NotThere):
            labels = (await engine.inspect_container(name))["Config"].get("Labels") or {}
        if not labels:
            return
        if labels.get(names.BOX) != box or labels.get(names.OWNER) != names.default_owner():
            raise WorkspaceError(f"The box {box} belongs to another owner.")
        await remove(engine, name)


async def read_logs(box: str, *, lines: int = 100) -> str:
    """Return the last lines that a box wrote about itself.

    Raises:
        WorkspaceError: There is no such box, or the engine does not answer.
    """
    async with open_engine() as engine:
        try:
            await _check(engine, box)
            return await engine.read_logs(names.name_of(box), lines=lines)
        except NotThere:
            raise _no_box(box) from None


@asynccontextmanager
async def open_shell(
    box: str, *, command: Sequence[str] = _SHELL, size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[OpenExec]:
    """Start a shell on a terminal in a box that runs. `stream` is its terminal; leaving the context closes it.

    Raises:
        WorkspaceError: There is no such box, it does not run, or the engine does not answer.
    """
    async with open_engine() as engine:
        await find_running(engine, box)
        async with engine.open_exec(names.name_of(box), command, size=size) as opened:
            yield opened


async def find_running(engine: Engine, box: str) -> Mapping[str, Any]:
    """Return what the engine knows of a box that runs.

    Raises:
        WorkspaceError: There is no such box, it does not run, or the engine does not answer.
    """
    try:
        found = await _check(engine, box)
    except NotThere:
        raise _no_box(box) from None
    if not found["State"].get("Running"):
        raise WorkspaceError(
            f"The box {box} does not run. Open its conversation, or remove it with `agentcore sandbox prune --all`."
        )
    return found


async def _check(engine: Engine, box: str) -> Mapping[str, Any]:
    try:
        name = names.name_of(check_id(box))
    except ValueError:
        raise _no_box(box) from None
    found = await engine.inspect_container(name)
    if not names.is_box(found["Name"], found["Config"].get("Labels") or {}):
        raise _no_box(box)
    return found


def _no_box(box: str) -> WorkspaceError:
    return WorkspaceError(f"There is no box {box!r}. `agentcore sandbox list` shows those that there are.")


async def _list(engine: Engine) -> tuple[BoxInfo, ...]:
    boxes: dict[str, BoxInfo] = {}
    parts: list[tuple[dict[str, str], datetime]] = []
    for row in await engine.list_containers([names.BOX]):
        labels: dict[str, str] = row["Labels"]
        created = datetime.fromtimestamp(row["Created"], UTC)
        if names.is_box(row["Names"][0], labels):
            boxes[labels[names.BOX]] = await _read_container(engine, row, created)
        elif row["Names"][0] == f"/{preparing_name(names.name_of(labels[names.BOX]))}":
            parts.append((labels, created))
    parts += [(each["Labels"], datetime.fromisoformat(each["CreatedAt"])) for each in await engine.list_volumes()]
    # What is left where a container was removed by hand, or was never made.
    for labels, created in parts:
        boxes.setdefault(labels[names.BOX], _info(labels, state="gone", created=created))
    return tuple(sorted(boxes.values(), key=lambda each: each.created))


async def _read_container(engine: Engine, row: Mapping[str, Any], created: datetime) -> BoxInfo:
    mounts: list[dict[str, str]] = row.get("Mounts") or []
    folder = next(
        (each["Source"] for each in mounts if each.get("Type") == "bind" and each.get("Destination") == ROOT), None
    )
    info = _info(row["Labels"], state=str(row["State"]), created=created)
    info = info.model_copy(update={"image": str(row["Image"]), "mount": folder})
    if info.state != "running":
        return info
    try:
        return info.model_copy(update={"in_use": await _is_in_use(engine, info.id)})
    except EngineError:
        return info


async def _is_in_use(engine: Engine, box: str) -> bool:
    """Return True if a helper or a shell is in a box."""
    try:
        found = await engine.inspect_container(names.name_of(box))
    except NotThere:
        return False
    return bool(found["State"].get("Running") and found.get("ExecIDs"))


def _info(labels: Mapping[str, str], *, state: str, created: datetime) -> BoxInfo:
    return BoxInfo(
        id=labels[names.BOX],
        owner=labels.get(names.OWNER, ""),
        conversation=labels.get(names.CONVERSATION, ""),
        image="",
        mount=None,
        state=state,
        in_use=False,
        created=created,
        expires=names.expiry_of(labels),
    )
