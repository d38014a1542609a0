"""Images with parts: the Dockerfile, what the terminal's program does, and what is refused."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx
import pytest
from httpx_ws import aconnect_ws

from agentcore_sandbox.images import build, build_image
from agentcore_sandbox.images.dockerfile import format_dockerfile, pack_context
from agentcore_sandbox.images.parts import FOLDER, PARTS, check_parts
from agentcore_sandbox.views import WebView
from boxes_plain import open_plain
from boxes_views import find_free_port

TERMINAL = Path(build.__file__).parent / "inside" / "terminal.py"


def test_an_image_without_parts_is_the_base_with_python() -> None:
    text = format_dockerfile("sha256:abc", [])
    assert text.startswith("FROM sha256:abc AS checked\n")
    assert "install --yes --no-install-recommends python3 " in text
    assert 'LABEL agentcore.views="{}"' in text


def test_all_parts_are_in_one_image_and_compilers_are_not() -> None:
    text = format_dockerfile("sha256:abc", list(PARTS))
    stages, last = text.split("FROM checked\n")
    assert "FROM sha256:abc AS editor\n" in stages
    assert "FROM sha256:abc AS terminal\n" in stages
    assert "build-essential" not in last
    assert "certificates" not in last
    assert f"COPY --from=editor {FOLDER} {FOLDER}\n" in last
    for part in PARTS.values():
        for package in part.packages:
            assert f" {package} " in last
        for file in part.files:
            assert f"COPY {file} {FOLDER}/{file}\n" in last
    assert r"\"path\": \"/vnc.html?autoconnect=1&resize=remote&path={base}websockify\"" in last


def test_the_archive_has_what_is_copied() -> None:
    packed = pack_context("FROM x\n", ["desktop", "terminal"], b"PEM")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getnames() == ["Dockerfile", "certificates.pem", "desktop.py", "terminal.html", "terminal.py"]


def test_parts_are_sorted_and_others_refused() -> None:
    assert check_parts(["terminal", "desktop", "terminal"]) == ["desktop", "terminal"]
    with pytest.raises(ValueError, match="write desktop, editor, terminal"):
        check_parts(["office"])


def test_what_the_machine_needs_to_reach_its_servers_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (*build.PROXIES, *build.CERTIFICATES, "PIP_INDEX_URL", "npm_config_registry", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    assert (build.read_environment(), build.read_certificates()) == ({}, b"")
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy:3128")
    monkeypatch.setenv("npm_config_registry", "https://registry.example/")
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:secret@index.example/simple")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificates.pem"))
    assert build.read_certificates() == b""
    (tmp_path / "certificates.pem").write_bytes(b"PEM")
    assert build.read_certificates() == b"PEM"
    # Docker keeps arguments in an image's history, but for proxies.
    assert build.read_environment() == {
        "https_proxy": "http://user:secret@proxy:3128",
        "NPM_CONFIG_REGISTRY": "https://registry.example/",
    }


async def test_a_name_that_is_none_is_refused_before_anything_is_done() -> None:
    with pytest.raises(ValueError, match="is not the name of an image"):
        await build_image(tag="Not a name")


async def test_the_terminal_gives_each_page_a_shell_that_ends_with_it(tmp_path: Path) -> None:
    port = find_free_port()
    view = WebView(port=port, command=(sys.executable, str(TERMINAL), str(port)))
    with anyio.fail_after(60):
        async with open_plain(tmp_path) as workspace, httpx.AsyncClient(trust_env=False, timeout=30) as client:
            address = (await workspace.views({"terminal": view}))["terminal"]
            origin = address.rsplit("/", 2)[0]
            await client.get(address)
            page = await client.get(f"{origin}/")
            assert "new WebSocket" in page.text
            async with aconnect_ws(f"{origin}/socket", client, headers={"Origin": origin}) as socket:
                await socket.send_text("s100 30")
                await socket.send_text("itty >tty; stty size >size; echo $$ >pid; echo $((6 * 7)) there; : > done\n")
                shown = b""
                while b"42 there" not in shown:
                    shown += await socket.receive_bytes()
                while await workspace.stat("done") is None:
                    await anyio.lowlevel.checkpoint()
            assert await workspace.read("size") == b"30 100\n"
            assert (await workspace.read("tty")).startswith(b"/dev/pts/")
            pid = int(await workspace.read("pid"))
            while (await workspace.run(["kill", "-0", str(pid)])).exit_code == 0:
                await anyio.lowlevel.checkpoint()
