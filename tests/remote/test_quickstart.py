"""The programs of the quickstart, with nothing changed but the workspace, which is on a server, and the address of the model."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest
from anyio.from_thread import start_blocking_portal
from tests.docs.test_programs import TO_RUN, Program, prepared

from agentcore.llm import LLM
from agentcore.testing import serve_provider
from agentcore.testing.conversation_place import ScriptLines
from agentcore_serve import ServeSettings, create_app
from programs import run_here
from rounds import some_quick
from serving import serve

PROGRAMS = [
    each
    for each in TO_RUN
    if each.page in ("README.md", "docs/quickstart.md") and re.search(r"\bConversation\(agent", each.code)
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Serve conversations in another thread; the module `place` has the workspace and a model of that server."""
    settings = ServeSettings(
        store=tmp_path / "store", root=tmp_path / "root", auth=False, model_addresses=("127.0.0.0/8", "localhost")
    )
    app = create_app(settings)
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        provider = stack.enter_context(portal.wrap_async_context_manager(serve_provider([])))
        server = stack.enter_context(portal.wrap_async_context_manager(serve(app)))

        def scripted(replies: ScriptLines) -> LLM:
            name = provider.add_script(replies)
            return LLM(f"openai/{name}", base_url=provider.base_url, api_key="not-a-key", num_retries=0)

        module = ModuleType("place")
        module.__dict__.update(URL=server.url, scripted=scripted)
        monkeypatch.setitem(sys.modules, "place", module)
        yield


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("program", some_quick(PROGRAMS, 4), ids=str)
def test_a_program_is_the_same_with_a_workspace_on_a_server(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PROGRAMS
    with prepared(program, tmp_path) as (file, folder, environment):
        code = re.sub(
            r'Conversation\(agent(, workspace="\.")?(, store=store)?',
            'Conversation(agent, workspace=agentcore.RemoteWorkspace(place.URL, path="project")',
            program.code.replace("ScriptedLLM([", "place.scripted(["),
        )
        file.write_text(f"import agentcore, place\n{code}", encoding="utf-8")
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
        monkeypatch.chdir(folder)
        assert run_here(monkeypatch, file) == 0
