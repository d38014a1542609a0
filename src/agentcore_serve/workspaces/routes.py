"""The routes below `/api/v1/workspaces`."""

from __future__ import annotations

import secrets
from datetime import UTC
from typing import Any, Final

from starlette.responses import Response

from agentcore.wire.workspaces import CommandAnswer, CreateWorkspace, Diff, Folder, RunCommand, WorkspaceInfo
from agentcore.workspace import CommandResult, Entry, GitChange
from agentcore_serve.routes.table import WEBSOCKET, Call, Route
from agentcore_serve.workspaces import files
from agentcore_serve.workspaces.calls import BOOT_HEADER, check_boot, hub_of, use
from agentcore_serve.workspaces.processes import serve_process

_BYTES: Final = "application/octet-stream"
_TAR: Final = "application/x-tar"


def _answer(call: Call, body: Any, status: int = 200) -> Response:
    """Return an answer that says which start of the server gave it."""
    return Response(body.model_dump_json(), status, {BOOT_HEADER: hub_of(call).boot}, media_type="application/json")


async def _create(call: Call) -> Response:
    body: CreateWorkspace = call.body
    record = await hub_of(call).create(call.identity, folder=body.folder, id=body.id)
    return _answer(call, await _info(call, record.id), 201)


async def _get(call: Call) -> Response:
    return _answer(call, await _info(call, call.params["workspace"]))


async def _info(call: Call, workspace_id: str) -> WorkspaceInfo:
    async with hub_of(call).use(call.identity, workspace_id) as opened:
        record = opened.record
        return WorkspaceInfo(
            id=record.id, folder=record.folder, root=opened.workspace.root, created=record.created.astimezone(UTC)
        )


async def _list(call: Call) -> list[Any]:
    # Without roots: they are known of open workspaces only, and a list opens none.
    return [
        {"id": record.id, "folder": record.folder, "created": record.created}
        for record in hub_of(call).list(call.identity)
    ]


async def _delete(call: Call) -> None:
    await hub_of(call).remove(call.identity, call.params["workspace"])


async def _run(call: Call) -> Response:
    check_boot(call)
    body: RunCommand = call.body
    hub = hub_of(call)
    workspace_id = hub.find(call.identity, call.params["workspace"]).id

    async def carry_out() -> CommandResult:
        async with hub.use(call.identity, workspace_id) as opened:
            return await opened.workspace.run(
                body.command, cwd=body.cwd, env=body.env, stdin=body.stdin, max_output=body.max_output
            )

    key = (workspace_id, body.id or secrets.token_hex(16))
    result = await hub.commands.do(key, carry_out, call.request.receive, wait=body.wait)
    return _answer(call, CommandAnswer(result=result))


async def _cancel(call: Call) -> None:
    hub = hub_of(call)
    record = hub.find(call.identity, call.params["workspace"])
    await hub.commands.cancel((record.id, call.params["command"]))


async def _changes(call: Call) -> list[GitChange]:
    async with use(call) as opened:
        return list(await opened.workspace.git_changes())


async def _diff(call: Call) -> Diff:
    async with use(call) as opened:
        path = files.path_of(call)
        # A path of git's, which follows no links.
        return Diff(diff=await opened.workspace.git_diff(None if path == "." else path))


async def _make_private(call: Call) -> Folder:
    async with use(call) as opened:
        return Folder(path=await opened.workspace.private_folder(call.query.name))


async def _remove_private(call: Call) -> None:
    async with use(call) as opened:
        await opened.workspace.remove_private_folder(call.query.name)


_ALL: Final = "/api/v1/workspaces"
_ONE: Final = f"{_ALL}/{{workspace}}"
_SCOPE: Final = "workspace"
_TAG: Final = "workspaces"

WORKSPACES: Final = (
    Route("POST", _ALL, _create, _SCOPE, CreateWorkspace, WorkspaceInfo, 201, "Make a workspace.", tag=_TAG),
    Route("GET", _ALL, _list, _SCOPE, None, list[Any], summary="List the workspaces of this owner.", tag=_TAG),
    Route("GET", _ONE, _get, _SCOPE, None, WorkspaceInfo, summary="Open a workspace, and describe it.", tag=_TAG),
    Route(
        "DELETE", _ONE, _delete, _SCOPE, status=204, summary="Forget a workspace; a fresh folder goes too.", tag=_TAG
    ),
    Route(
        "GET",
        f"{_ONE}/files",
        files.read,
        _SCOPE,
        summary="Read a file (Range).",
        query=files.ReadQuery,
        media=_BYTES,
        tag=_TAG,
    ),
    Route(
        "PUT",
        f"{_ONE}/files",
        files.write,
        _SCOPE,
        status=204,
        summary="Replace a file.",
        query=files.WriteQuery,
        raw=_BYTES,
        tag=_TAG,
    ),
    Route(
        "POST",
        f"{_ONE}/files/append",
        files.append,
        _SCOPE,
        status=204,
        summary="Add to the end of a file.",
        query=files.AppendQuery,
        raw=_BYTES,
        tag=_TAG,
    ),
    Route(
        "GET",
        f"{_ONE}/folders",
        files.read_folder,
        _SCOPE,
        summary="Read a folder.",
        query=files.PathQuery,
        media=_TAR,
        tag=_TAG,
    ),
    Route(
        "PUT",
        f"{_ONE}/folders",
        files.write_folder,
        _SCOPE,
        status=204,
        summary="Add a tar's files to a folder.",
        query=files.PathQuery,
        raw=_TAR,
        tag=_TAG,
    ),
    Route(
        "GET",
        f"{_ONE}/list",
        files.list_folder,
        _SCOPE,
        None,
        list[Entry],
        summary="List a folder.",
        query=files.PathQuery,
        tag=_TAG,
    ),
    Route(
        "GET",
        f"{_ONE}/stat",
        files.stat,
        _SCOPE,
        None,
        Entry | None,
        summary="Look at a path; null where there is nothing.",
        query=files.PathQuery,
        tag=_TAG,
    ),
    Route(
        "PUT",
        f"{_ONE}/private",
        _make_private,
        _SCOPE,
        None,
        Folder,
        summary="Make a private folder.",
        query=files.NameQuery,
        tag=_TAG,
    ),
    Route(
        "DELETE",
        f"{_ONE}/private",
        _remove_private,
        _SCOPE,
        status=204,
        summary="Remove a private folder.",
        query=files.NameQuery,
        tag=_TAG,
    ),
    Route(
        "POST",
        f"{_ONE}/commands",
        _run,
        _SCOPE,
        RunCommand,
        CommandAnswer,
        summary="Run a command to its end; the client that leaves ends it.",
        tag=_TAG,
    ),
    Route("DELETE", f"{_ONE}/commands/{{command}}", _cancel, _SCOPE, status=204, summary="End a command.", tag=_TAG),
    Route(WEBSOCKET, f"{_ONE}/processes", serve_process, _SCOPE, summary="Start a process, and talk to it.", tag=_TAG),
    Route(
        "GET", f"{_ONE}/changes", _changes, _SCOPE, None, list[GitChange], summary="List what differs in git.", tag=_TAG
    ),
    Route("GET", f"{_ONE}/diff", _diff, _SCOPE, None, Diff, summary="Show it.", query=files.PathQuery, tag=_TAG),
)
"""For the one list of the server's routes."""
