"""The tests of the terminal and the editor once more, with the tools in a box: they notice no difference."""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sniffio import current_async_library_cvar

from agentcore.workspace import Workspace
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from agentcore_sandbox.docker.box import DockerBox
from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_docker import FolderInContainer, open_container_over
from boxes_docker import inspect as inspect_container
from boxes_places import CONFINED, skip_trio
from boxes_processes import number_in_bubblewrap, numbers_in_container
from living import Numbers
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

LEFT_OUT: dict[str, dict[str, str]] = {
    "plain": {},
    "bubblewrap": {
        "test_killed_at_once_an_agent_leaves_nothing_and_the_next_process_tells": "runs a program of its own, which knows no box",
        "test_more_than_the_workspace_is_a_setting": "the other folder is one of this machine",
        "test_the_user_s_history_stays_as_it_is": "the home is this machine's; that of a box is empty",
        "test_a_shell_that_can_not_start_is_told": "removes the folder, which is mounted and so goes on being there inside",
    },
    "docker": {
        "test_killed_at_once_an_agent_leaves_nothing_and_the_next_process_tells": "runs a program of its own, which knows no box",
        "test_random_commands_give_what_bash_gives": "runs event loops of its own, and the container is used on another",
        "test_two_hundred_random_commands_in_a_row_give_what_bash_gives": "the same",
        "test_zsh_in_its_place_is_such_a_program_too": "the image has no zsh",
        "test_the_user_s_history_stays_as_it_is": "the home is this machine's; that of a box is empty",
    },
}
"""Tests that are about this machine, by the kind of box, each with the reason."""

IS_BOUNDED = "AGENTCORE_BOUNDED" in os.environ

OPEN_BY_THEMSELVES = {
    "test_random_commands_give_what_bash_gives",
    "test_two_hundred_random_commands_in_a_row_give_what_bash_gives",
}
"""Tests that are not async, and open a place all the same. The others are of parts that know no place, and are in one."""


@asynccontextmanager
async def open_in_plain_box(folder: Path, env: Mapping[str, str] | None = None) -> AsyncGenerator[Workspace]:
    async with BoxWorkspace(PlainBox(folder, env=env)) as workspace:
        yield workspace


@asynccontextmanager
async def open_in_bubblewrap(folder: Path, env: Mapping[str, str] | None = None) -> AsyncGenerator[Workspace]:
    async with BubblewrapWorkspace(folder, env=env) as workspace:
        yield workspace


@asynccontextmanager
async def open_in_container(
    container: DockerBox, folder: Path, env: Mapping[str, str] | None = None
) -> AsyncGenerator[Workspace]:
    async with BoxWorkspace(FolderInContainer(container, folder, env or {})) as workspace:
        yield workspace


@pytest.fixture(scope="module")
async def container(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[DockerBox, str]]:
    """One container for all tests, over all of their folders, and its number: making one takes most of a second."""
    async with open_container_over(os.environ["TEST_IMAGE"], tmp_path_factory.getbasetemp()) as box:
        yield box, (await inspect_container(f"agentcore-{box.spec.params['box']}"))["Id"]


SLOW = (pytest.param(*each.values, marks=[*each.marks, pytest.mark.slow]) for each in CONFINED)
PLACES = {"plain": "plain", **{str(each.values[0]): each for each in SLOW}}


@pytest.fixture(autouse=True)
def _place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    match getattr(request, "param", None):
        case None:  # it runs in none
            return
        case "plain":
            place = open_in_plain_box
        case "bubblewrap":
            place = open_in_bubblewrap
            monkeypatch.setattr(Numbers, "of_machine", staticmethod(number_in_bubblewrap))
        case _:
            skip_trio("docker", request.getfixturevalue("anyio_backend"))
            box, number = request.getfixturevalue("container")
            place = partial(open_in_container, box)
            monkeypatch.setattr(Numbers, "of_machine", staticmethod(numbers_in_container(number)))
    monkeypatch.setattr(Place, "open", staticmethod(place))
    if "anyio_backend" not in request.fixturenames:
        # The loop that the container is used on rests meanwhile, and would pass for one that runs.
        current_async_library_cvar.set(None)


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
    for number, (each, value) in enumerate(vars(load(name)).items()):
        if isinstance(value, type(_place)):
            yield each, value
        elif each.startswith("test_") and inspect.isfunction(value):
            opens = inspect.iscoroutinefunction(value) or each in OPEN_BY_THEMSELVES
            named = f"{name}__{each.removeprefix('test_')}"
            kinds = [kind for kind in PLACES if each not in LEFT_OUT[kind] and (opens or kind == "plain")]
            if IS_BOUNDED and named not in QUICK:
                # Each test in one of the boxes, and each box with half of the tests.
                kinds = [kind for kind in kinds if kind != "plain"][number % 2 :][:1] or kinds[-1:]
            places = [PLACES[kind] for kind in kinds]
            test = pytest.mark.parametrize("_place", places, indirect=True)(value)
            # Two modules may have a test of the same name. What is loaded again here is not what is run there.
            yield named, test if named in QUICK else pytest.mark.slow(test)


def test_what_is_left_out_is_there() -> None:
    names = {each for name in MODULES for each in vars(load(name))}
    assert {each for left in LEFT_OUT.values() for each in left} | OPEN_BY_THEMSELVES <= names


for module_name in MODULES:
    for found, each in parts_of(module_name):
        assert found not in globals(), found
        globals()[found] = each
