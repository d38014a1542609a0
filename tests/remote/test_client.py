from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from pydantic import SecretStr
from starlette.types import ASGIApp, Receive, Scope, Send

from agentcore.errors import (
    ConnectionLost,
    MissingExtra,
    NotAuthorized,
    PathError,
    ServerError,
    TooManyRequests,
    WorkspaceError,
    WorkspaceNotOpen,
)
from agentcore.remote.workspace import RemoteWorkspace
from agentcore.testing.workspace_process_contract import refused
from agentcore.workspace import record_workspace
from rounds import some_quick
from workspace_server import KEY, serve_workspaces


class _Unsteady:
    """Between clients and a server: answers of its own, or a connection that is cut, before or after the server did its part.

    Each entry of `plan` is for one request: None passes it on, a number answers with that status, "before" and "after" cut, "refused" in a refusal.
    """

    def __init__(self) -> None:
        self.plan: list[int | str | None] = []
        self.headers: list[tuple[bytes, bytes]] = []
        self.requests = 0

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
            step = self.plan.pop(0) if self.plan and scope["type"] == "http" else None
            self.requests += scope["type"] == "http"
            if isinstance(step, int):
                await send({"type": "http.response.start", "status": step, "headers": self.headers})
                await send({"type": "http.response.body", "body": b"from a proxy"})
                return
            if step is None:
                await app(scope, receive, send)
                return
            if step == "after":
                await app(scope, receive, _swallow)
            # Less than what was promised: the connection is cut.
            status = 422 if step == "refused" else 200
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"1000")]})
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            raise _Cut

        return pass_on


class _Cut(Exception):
    pass


async def _swallow(message: object) -> None:
    del message


@pytest.mark.parametrize("step", some_quick([502, 503, 504, 429, "before", "after", "refused"], 3))
async def test_what_was_cut_is_done_once_and_answered(tmp_path: Path, step: int | str) -> None:
    unsteady = _Unsteady()
    async with (
        serve_workspaces(tmp_path, wrap=unsteady) as server,
        RemoteWorkspace(server.url, api_key=KEY) as workspace,
    ):
        with anyio.fail_after(30):
            unsteady.plan = [step]
            assert (await workspace.run("echo x >>ran; cat ran")).stdout == "x\n"
            unsteady.plan = [step]
            await workspace.append("ran", "y\n")
            unsteady.plan = [step]
            assert await workspace.read("ran") == b"x\ny\n"


async def test_what_was_begun_before_the_server_started_anew_is_lost_and_not_done_again(tmp_path: Path) -> None:
    unsteady = _Unsteady()
    async with (
        serve_workspaces(tmp_path, wrap=unsteady) as server,
        RemoteWorkspace(server.url, api_key=KEY) as workspace,
    ):
        with anyio.fail_after(30):
            unsteady.plan = ["before"]
            server.hub.boot = "another"
            await refused(ConnectionLost, workspace.run("touch ran"))
            unsteady.plan = ["before"]
            server.hub.boot = "yet another"
            await refused(ConnectionLost, workspace.append("ran", "x"))
            assert await workspace.list() == ()


async def test_a_server_that_stays_away_is_a_lost_connection(tmp_path: Path) -> None:
    async with (
        serve_workspaces(tmp_path) as server,
        RemoteWorkspace(server.url, api_key=KEY, reconnect_seconds=0.3) as workspace,
    ):
        server.serving.stop.set()
        await server.serving.ended.wait()
        with anyio.fail_after(30):
            error = await refused(ConnectionLost, workspace.read("x"))
            assert server.url in str(error)
            assert error.url == server.url
            await refused(ConnectionLost, workspace.open_process("true").__aenter__())


async def test_a_server_that_is_busy_says_until_when(tmp_path: Path) -> None:
    unsteady = _Unsteady()
    unsteady.headers = [(b"retry-after", b"3600")]
    async with (
        serve_workspaces(tmp_path, wrap=unsteady) as server,
        RemoteWorkspace(server.url, api_key=KEY, reconnect_seconds=0.2) as workspace,
    ):
        before = unsteady.requests
        unsteady.plan = [429]
        with anyio.fail_after(30):
            await refused(TooManyRequests, workspace.list())
        assert unsteady.requests == before + 1
        unsteady.plan = [500]
        assert (await refused(ServerError, workspace.list())).status == 500


async def test_errors_arrive_as_the_classes_they_were(tmp_path: Path) -> None:
    async with serve_workspaces(tmp_path) as server:
        async with RemoteWorkspace(server.url, api_key=KEY, path="a") as workspace:
            error = await refused(PathError, workspace.read("gone"))
            assert (error.path, error.reason) == (f"{workspace.root}/gone", "missing")
            await refused(ValueError, workspace.run("true", max_output=-1))
        await refused(NotAuthorized, RemoteWorkspace(server.url, api_key="wrong").__aenter__())
        missing = RemoteWorkspace(server.url, api_key=KEY, id="ws_none")
        assert (await refused(ServerError, missing.__aenter__())).status == 404
        assert not missing.is_open
        await refused(PathError, RemoteWorkspace(server.url, api_key=KEY, path="../up").__aenter__())


async def test_the_key_is_nowhere_to_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCORE_SERVER_KEY", KEY)
    async with serve_workspaces(tmp_path) as server:
        workspace = RemoteWorkspace(server.url, reconnect_seconds=0.1)
        async with workspace:
            spec = record_workspace(workspace)
            assert spec.kind == "remote"
            assert spec.params == {"url": server.url, "id": workspace.id}
            seen = [repr(workspace), repr(vars(workspace)), spec.model_dump_json()]
    await workspace.__aexit__(None, None, None)
    error = await refused(ConnectionLost, workspace.__aenter__())
    seen += [str(error), repr(error), repr(error.__cause__)]
    seen.append(repr(RemoteWorkspace(server.url, api_key=SecretStr("other"))))
    assert not any(KEY in text or "other" in text for text in seen)


async def test_a_workspace_is_there_again_by_its_id(tmp_path: Path) -> None:
    async with serve_workspaces(tmp_path) as server:
        async with RemoteWorkspace(server.url, api_key=KEY) as workspace:
            await workspace.write("file", "kept")
        async with RemoteWorkspace(server.url, api_key=KEY, id=workspace.id) as again:
            assert await again.read("file") == b"kept"
        async with workspace:
            assert await workspace.read("file") == b"kept"
        assert len(list((tmp_path / "root").iterdir())) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "http://10.0.0.1:80",
        "ftp://localhost",
        "localhost:80",
        "https://user:key@x",
        "https://x?k=1",
        "",
    ],
)
def test_an_address_that_is_none_or_not_protected_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"The url of a server|http:// to") as raised:
        RemoteWorkspace(url)
    assert "user:key" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["https://example.org/x/", "http://localhost:1", "http://127.0.0.2", "http://[::1]:8000"]
)
def test_a_protected_address_or_this_machine_is_accepted(url: str) -> None:
    assert repr(RemoteWorkspace(url)) == f"RemoteWorkspace({url.rstrip('/')!r})"
    RemoteWorkspace("http://example.org", insecure=True)


def test_a_folder_and_an_id_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="not both"):
        RemoteWorkspace("https://x", path="a", id="b")


async def test_outside_of_its_context_nothing_can_be_done() -> None:
    workspace = RemoteWorkspace("https://example.org")
    calls: tuple[Callable[[], object], ...] = (
        lambda: workspace.run("true"),
        lambda: workspace.read("x"),
        lambda: workspace.write("x", b""),
        lambda: workspace.append("x", b""),
        workspace.list,
        lambda: workspace.stat("x"),
        lambda: workspace.upload("x", "x"),
        lambda: workspace.download("x", "x"),
        workspace.git_changes,
        lambda: workspace.git_diff("x"),
        lambda: workspace.private_folder("x"),
        lambda: workspace.remove_private_folder("x"),
        lambda: workspace.open_process("true").__aenter__(),
    )
    for call in calls:
        assert "example.org" in str(await refused(WorkspaceNotOpen, call()))  # type: ignore[arg-type]
    with pytest.raises(WorkspaceNotOpen):
        _ = workspace.root


async def test_a_process_without_the_extra_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx_ws", None)
    async with serve_workspaces(tmp_path) as server, RemoteWorkspace(server.url, api_key=KEY) as workspace:
        assert (await workspace.run("echo fine")).stdout == "fine\n"
        error = await refused(MissingExtra, workspace.open_process("true").__aenter__())
        assert error.extra == "remote"
        with pytest.raises(WorkspaceError):
            await workspace.__aenter__()
