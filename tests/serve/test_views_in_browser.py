"""A view on a server in a real browser, whose page does what it may and tries what it may not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from serving import serve
from serving_views import API, open_site, without_lifespan

CHROMIUM: Final = Path("/usr/bin/chromium")
PAGE: Final = r"""<!doctype html><title>inside</title><body>inside<script>
const attempt = async (work) => { try { return await work(); } catch (error) { return "refused"; } };
(async () => {
  const found = { cookie: document.cookie };
  found.own = await attempt(async () => (await (await fetch("json")).json()).line);
  localStorage.setItem("kept", "yes");
  found.kept = localStorage.getItem("kept");
  found.socket = await new Promise((resolve) => {
    const socket = new WebSocket("socket".replace(/^/, location.href.replace(/^http/, "ws").replace(/[^/]*$/, "")));
    socket.onopen = () => socket.send("hello");
    socket.onmessage = (event) => resolve(event.data);
    socket.onerror = () => resolve("failed");
  });
  found.server = await attempt(async () => (await fetch("SERVER/api/v1/workspaces", { credentials: "include" })).text());
  found.above = await attempt(async () => (await fetch("/api/v1/workspaces")).status);
  found.worker = await attempt(async () => { await navigator.serviceWorker.register("page.js"); return "registered"; });
  const frame = document.createElement("iframe");
  frame.src = "SERVER/";
  document.body.append(frame);
  found.frame = await new Promise((resolve) => {
    frame.onload = () => resolve(attempt(async () => frame.contentDocument.title));
    setTimeout(() => resolve("refused"), 2000);
  });
  document.body.dataset.found = JSON.stringify(found);
})();
</script>"""

playwright = pytest.importorskip(
    "playwright.async_api", reason="needs playwright: pip install agentcore-runtime[test-serve]"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs /usr/bin/chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def test_a_view_works_in_a_browser_and_its_page_reaches_nothing_of_the_server(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, serve(without_lifespan(site.app)) as serving:
        folder = tmp_path / "root" / site.workspace
        (folder / "page.html").write_text(PAGE.replace("SERVER", serving.url))
        async with playwright.async_playwright() as driver:
            browser: Any = await driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
            try:
                context = await browser.new_context()
                context.set_default_timeout(30_000)
                page = await context.new_page()
                # Somebody who is logged in at the server's own page, and may do everything there.
                code = site.app.state.security.pages.codes.issue(site.ids["ann"])
                await page.goto(f"{serving.url}/enter?code={code}")
                await page.wait_for_url(f"{serving.url}/")
                listed = await page.evaluate(
                    f"fetch('{API}/workspaces/{site.workspace}/views').then((answer) => answer.json())"
                )
                address = listed[0]["url"]
                view = await context.new_page()
                await view.goto(address)
                await view.wait_for_url("**/first?a=b")
                assert "GET /first?a=b HTTP/1.1" in await view.inner_text("body")
                await view.goto(f"{address.partition('?')[0]}/page")
                await view.wait_for_selector("body[data-found]")
                found = json.loads(await view.get_attribute("body", "data-found"))
                assert found == {
                    "cookie": "",
                    "own": "GET /json HTTP/1.1",
                    "kept": "yes",
                    "socket": "hello",
                    "server": "refused",
                    "above": 404,
                    "worker": "refused",
                    "frame": "refused",
                }
                # The same address in another browser.
                stranger = await (await browser.new_context()).new_page()
                answer = await stranger.goto(address)
                assert answer.status == 401
            finally:
                await browser.close()
