"""The watch page as files: which are served, as what, and what is in them. What they do is in `test_page`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

import agentcore_serve.page
from agentcore import Agent
from agentcore.cli import keys
from agentcore.testing import ScriptedLLM
from agentcore_serve import ServeSettings, create_app
from agentcore_serve.page.routes import FILES, SCRIPT
from serving import serve

FOLDER = Path(agentcore_serve.page.__file__).parent
AGENTS = {"coder": Agent(llm=ScriptedLLM([]))}

# The npm package htm 3.1.1, `preact/standalone.module.js`.
SCRIPT_SHA256 = "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7"


def own_files(*suffixes: str) -> list[Path]:
    return [path for path in FOLDER.iterdir() if path.suffix in suffixes]


async def test_each_file_is_served_to_everybody_with_its_type_and_a_strict_policy(tmp_path: Path) -> None:
    app = create_app(ServeSettings(store=tmp_path / "store", root=tmp_path), agents=AGENTS)
    transport = httpx.ASGITransport(app)
    types = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as client:
        for name in ("", *(f"page/{name}" for name in FILES)):
            answer = await client.get(f"/{name}")
            assert answer.status_code == 200, name
            assert answer.content == (FOLDER / (name.removeprefix("page/") or "index.html")).read_bytes()
            assert answer.headers["content-type"].split(";")[0] == types.get(Path(name).suffix, "text/html")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-cache"
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
            assert "unsafe" not in policy
        for name in ("page/", "page/routes.py", "page/index.html", "page/%2e%2e/app.py", "page/vendor/LICENSE-htm.txt"):
            assert (await client.get(f"/{name}")).status_code == 401


def test_the_list_of_files_is_the_folder_and_each_that_one_asks_for_is_there() -> None:
    assert {path.name for path in own_files(".js", ".css", ".svg")} | {SCRIPT} == set(FILES)
    for script in own_files(".js"):
        for asked in re.findall(r'from "([^"]+)"', script.read_text()):
            assert asked.removeprefix("./") in FILES, script.name
    index = (FOLDER / "index.html").read_text()
    asked = re.findall(r'(?:src|href)="([^"]+)"', index)
    assert asked
    assert {name.removeprefix("page/") for name in asked} <= set(FILES)


def test_no_file_of_ours_can_turn_text_into_markup_or_code_or_asks_another_place() -> None:
    acts = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function|srcdoc|localStorage"
    for path in own_files(".js", ".html", ".css"):
        text = path.read_text()
        assert re.findall(acts, text) == [], path.name
        assert re.findall(r'(?:from|src=|href=|url\(|import\()\s*["\'(]?https?:', text) == [], path.name
        assert "style=" not in text, path.name  # the policy has no inline styles
    assert re.findall(r"<script(?![^>]*\bsrc=)|\bon\w+=", (FOLDER / "index.html").read_text()) == []


def test_the_vendored_file_is_the_published_one_and_its_licences_are_beside_it() -> None:
    assert hashlib.sha256((FOLDER / SCRIPT).read_bytes()).hexdigest() == SCRIPT_SHA256
    assert "Apache License" in (FOLDER / "vendor/LICENSE-htm.txt").read_text()
    assert "MIT License" in (FOLDER / "vendor/LICENSE-preact.txt").read_text()


def test_the_files_are_in_the_wheel() -> None:
    project = FOLDER.parents[2]
    built = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = built["targets"]["wheel"]
    # All of a package's folder is, unless it is excluded, or ignored by git.
    assert "src/agentcore_serve" in wheel["packages"]
    assert {"exclude", "only-include", "ignore-vcs"}.isdisjoint({*built, *wheel})
    ignored = (project / ".gitignore").read_text().splitlines()
    assert not [line for line in ignored if re.search(r"\.(js|css|html|svg|txt)|vendor|page", line)]


async def test_the_link_is_of_the_oldest_key_that_may_do_everything(tmp_path: Path) -> None:
    app = create_app(ServeSettings(store=tmp_path / "store", root=tmp_path), agents=AGENTS)
    async with app.lifespan():
        store = app.state.security.keys
        await store.add("watcher", scopes=["read"])
        await store.add("of ann", owner="ann")
        assert await app.make_page_link("http://127.0.0.1:1") is None
        first, _ = await store.add("first")
        await store.add("second")
        link = await app.make_page_link("http://127.0.0.1:1")
        assert link is not None
        before, _, code = link.partition("=")
        assert before == "http://127.0.0.1:1/enter?code"
        assert app.state.security.pages.codes.redeem(code) == first.id
        await store.revoke(first.id)
        assert await store.find_first() != first.id


async def test_without_keys_the_link_is_the_address(tmp_path: Path) -> None:
    app = create_app(ServeSettings(store=tmp_path / "store", root=tmp_path, auth=False), agents=AGENTS)
    async with app.lifespan():
        assert await app.make_page_link("http://127.0.0.1:1") == "http://127.0.0.1:1/"


async def test_the_command_prints_a_link_that_logs_in_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = create_app(ServeSettings(store=tmp_path / "store", root=tmp_path), agents=AGENTS)
    with anyio.fail_after(20):
        async with serve(app) as serving:
            key = await app.make_first_key()
            assert key is not None
            monkeypatch.setenv("AGENTCORE_SERVER_KEY", key.get_secret_value())
            assert await keys.print_link(serving.url) == 0
            link = capsys.readouterr().out.strip()
            async with httpx.AsyncClient() as browser:
                answer = await browser.get(link)
                assert answer.status_code == 200
                assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
                again = await browser.get(link, headers={"Accept": "text/html"})
                assert (again.status_code, "set-cookie" in again.headers) == (401, False)
                assert "This link was used already" in again.text
                assert (await browser.get(link)).json()["code"] == "not_authorized"


@pytest.mark.slow
async def test_serve_prints_the_link_beside_its_line_for_programs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agentcore", "serve", "--port", "0", "--store", str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    with anyio.fail_after(60):
        async with await anyio.open_process(command, env=environment, cwd=tmp_path) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            url = json.loads(await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 10_000))["url"]
            printed = ""
            while (link := re.search(rf"^ +({re.escape(url)}/enter\?code=acp_\w+)\n", printed, re.MULTILINE)) is None:
                printed += (await process.stderr.receive()).decode()
            async with httpx.AsyncClient(base_url=url, headers={"Sec-Fetch-Site": "same-origin"}) as browser:
                assert (await browser.get("/api/v1/version")).status_code == 401
                assert (await browser.get(link[1])).status_code == 200
                assert (await browser.get("/api/v1/version")).status_code == 200
            process.terminate()
