"""The views of real images, looked at in a real browser. `nox -s views` builds the images."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.views import parse_views

CHROMIUM = Path("/usr/bin/chromium")
IMAGES = os.environ.get("VIEW_IMAGES", "").split()
SHOTS = os.environ.get("VIEW_SCREENSHOTS")
"""A folder in which pictures are kept, to look at."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not IMAGES, reason="needs images with views: VIEW_IMAGES='name name', as `agentcore sandbox build` made them"
    ),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs /usr/bin/chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def looking(view: str) -> AsyncGenerator[tuple[DockerWorkspace, Any]]:
    """Open a box of an image with this view, and a page that looks at it; the picture is kept in the end."""
    playwright = pytest.importorskip("playwright.async_api")
    with anyio.fail_after(300):
        async with DockerWorkspace(
            await find_image(view), pull="never", tmp_size="1g", labels={"owner": "tests"}
        ) as box:
            address = (await box.views())[view]
            async with playwright.async_playwright() as driver:
                browser = await driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
                page = await browser.new_page(viewport={"width": 1280, "height": 800})
                page.set_default_timeout(120_000)
                await page.goto(address)
                try:
                    yield box, page
                finally:
                    if SHOTS:
                        await page.screenshot(path=f"{SHOTS}/{view}.png")
                    await browser.close()


async def find_image(view: str) -> str:
    async with open_engine() as engine:
        for image in IMAGES:
            facts = await engine.find_image(image)
            if facts is not None and view in parse_views(facts.views):
                return image
    pytest.skip(f"none of the images has {view!r}: agentcore sandbox build --with {view}")


async def test_the_terminal_runs_what_is_typed() -> None:
    async with looking("terminal") as (box, page):
        await page.wait_for_selector(".xterm-rows")
        await page.wait_for_function("document.querySelector('.xterm-rows').innerText.includes('$')")
        await page.keyboard.type("echo hi > typed; echo $((6 * 7)) there\n")
        await page.wait_for_function("document.querySelector('.xterm-rows').innerText.includes('42 there')")
        assert await box.read("typed") == b"hi\n"


async def test_the_desktop_shows_a_browser() -> None:
    async with looking("desktop") as (box, page):
        await page.wait_for_selector("#noVNC_container canvas", state="visible")
        # The empty page of the browser inside, which is maximized.
        await page.wait_for_function(
            """() => {
                const canvas = document.querySelector('#noVNC_container canvas');
                const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
                const pixels = new Uint32Array(data.buffer);
                return pixels.filter((pixel) => pixel === 0xffffffff).length > pixels.length / 2;
            }""",
            polling=1000,
        )
        windows = await box.run("DISPLAY=:1 xwininfo -root -tree")
        assert "about:blank - Chromium" in windows.stdout


async def test_the_editor_shows_the_projects_files() -> None:
    async with looking("editor") as (box, page):
        await box.write("shown-in-editor.txt", "hello")
        await page.wait_for_selector(".monaco-workbench")
        await page.wait_for_selector("text=shown-in-editor.txt")
