"""`import agentcore` is what every program, test and command pays first."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "aiodocker",
    "aiohttp",
    "httpx",
    "hypercorn",
    "jsonschema",
    "litellm",
    "mcp",
    "openai",
    "rich",
    "starlette",
    "structlog",
    "typer",
}


def modules_after(program: str) -> set[str]:
    """Run a program in a new interpreter; give the top-level modules that are loaded at its end."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return {name.partition(".")[0] for name in ended.stdout.split()}


@pytest.mark.parametrize(
    "program",
    [
        "from agentcore import Agent, Conversation, LLM, tool, FileStore",
        "from agentcore import *",
        "import agentcore_tools",
    ],
)
def test_nothing_heavy_is_loaded_by(program: str) -> None:
    assert modules_after(program) & HEAVY == set()


def test_the_package_alone_loads_no_pydantic() -> None:
    assert "pydantic" not in modules_after("import agentcore")


def test_what_is_watched_for_would_be_seen() -> None:
    assert "rich" in modules_after("import rich.console")
