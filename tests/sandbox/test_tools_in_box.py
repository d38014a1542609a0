"""The tests of the terminal and the editor once more, with the tools in a box: they notice no difference."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentcore.workspace import Workspace
from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.workspace import BoxWorkspace
from opened_tool import Place

TOOLS = Path(__file__).parents[1] / "tools"
MODULES = (
    "conftest",
    *sorted(path.stem for path in [*TOOLS.glob("test_terminal*.py"), *TOOLS.glob("test_file_editor*.py")]),
)

QUICK = {
    "test_terminal__a_command_means_what_it_means_to_bash_and_the_next_one_works",
    "test_terminal__a_command_is_interrupted_by_its_key_and_the_shell_lives_on",
    "test_terminal_running__cancelling_a_call_ends_what_runs_in_its_session_alone",
    "test_file_editor__create_replaces_nothing",
}
"""The tests of the normal run; the others are slow, since they are the same that the normal run has without a box."""

LEFT_OUT: dict[str, str] = {}
"""Tests that are about this machine, each with the reason."""


@asynccontextmanager
async def open_in_plain_box(folder: Path, env: Mapping[str, str] | None = None) -> AsyncGenerator[Workspace]:
    async with BoxWorkspace(PlainBox(folder, env=env)) as workspace:
        yield workspace


PLACES: dict[str, Callable[..., AbstractAsyncContextManager[Workspace]]] = {"plain": open_in_plain_box}


@pytest.fixture(autouse=True, params=PLACES)
def _place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Place, "open", staticmethod(PLACES[request.param]))


def load(name: str) -> ModuleType:
    """Load a module of tests again, by its path: the folders of tests are no packages."""
    spec = importlib.util.spec_from_file_location(f"in_box_{name}", TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parts_of(name: str) -> Iterator[tuple[str, Any]]:
    """Yield what pytest collects, and the fixtures for that."""
    for each, value in vars(load(name)).items():
        if isinstance(value, type(_place)):
            yield each, value
        elif each.startswith("test_") and inspect.isfunction(value) and each not in LEFT_OUT:
            # Two modules may have a test of the same name. What is loaded again here is not what is run there.
            named = f"{name}__{each.removeprefix('test_')}"
            yield named, value if named in QUICK else pytest.mark.slow(value)


for module_name in MODULES:
    for found, each in parts_of(module_name):
        assert found not in globals(), found
        globals()[found] = each
