"""Tools that are made again from a record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from agentcore.errors import ToolNotFound
from agentcore.tools import (
    Action,
    AnyTool,
    TextObservation,
    Tool,
    ToolContext,
    ToolRegistry,
    ToolSpec,
    finish_tool,
    register_tool,
    resolve_tool,
    think_tool,
    tool,
)


class Greet(Action):
    who: str


def greet_tool(greeting: str = "Hello") -> Tool[Greet, TextObservation]:
    async def greet(action: Greet, ctx: ToolContext) -> TextObservation:
        return TextObservation(text=f"{greeting}, {action.who}")

    return Tool(
        name="greet",
        description=f"Say {greeting}.",
        action=Greet,
        execute=greet,
        spec=ToolSpec(name="greet", params={"greeting": greeting}),
    )


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def not_a_tool() -> str:
    return "secret"


class Report(BaseModel):
    title: str


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


def function_spec(path: str) -> ToolSpec:
    return ToolSpec(name="function", params={"import": path})


def test_a_registered_tool_comes_back_with_its_parameters(registry: ToolRegistry) -> None:
    registry.register("greet", greet_tool)
    spec = greet_tool("Salve").spec
    assert spec is not None
    again = registry.resolve(ToolSpec.model_validate_json(spec.model_dump_json()))
    assert again.description == "Say Salve."
    assert again.spec == spec


def test_a_name_has_one_factory(registry: ToolRegistry) -> None:
    registry.register("greet", greet_tool)
    registry.register("greet", greet_tool)
    with pytest.raises(ValueError, match="'greet'"):
        registry.register("greet", think_tool)
    with pytest.raises(ValueError, match="'finish'"):
        registry.register("finish", greet_tool)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (ToolSpec(name="paint"), r"'paint'.*register_tool"),
        (ToolSpec(name="greet", params={"salutation": "x"}), "refused its parameters"),
        (ToolSpec(name="greet", params={"greeting": "x", "greeting2": 1}), "refused its parameters"),
        (ToolSpec(name="itself", params={"greeting": "x"}), "no parameters"),
        (ToolSpec(name="none"), "not a tool: "),
        (ToolSpec(name="finish", params={"output": f"{__name__}:Report"}), "refused its parameters"),
        (
            ToolSpec(name="finish", params={"output": {"name": "x", "schema": {"type": "text"}}}),
            "refused its parameters",
        ),
        (ToolSpec(name="finish", params={"output": {"name": "x"}}), "refused its parameters"),
    ],
)
def test_what_can_not_be_made_again_says_why(registry: ToolRegistry, spec: ToolSpec, words: str) -> None:
    registry.register("greet", greet_tool)
    made = greet_tool()
    registry.register("itself", made)
    assert registry.resolve(ToolSpec(name="itself")) is made
    registry.register("none", lambda: "no tool")  # type: ignore[arg-type, return-value]
    with pytest.raises(ToolNotFound, match=words):
        registry.resolve(spec)


@pytest.mark.parametrize("made", [finish_tool(), finish_tool(Report), think_tool(), double], ids=repr)
def test_built_in_tools_and_functions_come_back(made: AnyTool) -> None:
    assert made.spec is not None
    again = resolve_tool(ToolSpec.model_validate_json(made.spec.model_dump_json()))
    assert again.schema == made.schema
    assert again.spec == made.spec


def test_one_registry_serves_the_process() -> None:
    register_tool("test_registry.greet", greet_tool)
    assert resolve_tool(ToolSpec(name="test_registry.greet")).name == "greet"


@pytest.mark.parametrize(
    "path",
    [
        *(f"{__name__}{rest}" for rest in (":not_a_tool", ":Report", ":nothing", ":double.function", "")),
        *("os:system", "builtins:eval", "", ":", "..:x"),
    ],
)
def test_a_log_can_name_nothing_but_tools(registry: ToolRegistry, path: str) -> None:
    with pytest.raises(ToolNotFound):
        registry.resolve(function_spec(path))


@pytest.fixture
def on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Write modules that are not imported; forget them afterwards."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)

    def write(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    yield write
    for name in set(sys.modules) - before:
        if name.startswith(("stranger", "friendly")):
            del sys.modules[name]


TOOLS = """
from agentcore.tools import tool, think_tool

@tool
async def hello() -> str:
    "Say hello."
    return "hello"
"""


def test_a_log_decides_no_import(registry: ToolRegistry, on_the_path: Callable[[str, str], None]) -> None:
    on_the_path("stranger.py", "raise SystemExit('imported')")
    with pytest.raises(ToolNotFound, match="allow_imports"):
        registry.resolve(function_spec("stranger:hello"))
    assert "stranger" not in sys.modules


def test_a_tool_of_another_program_is_named_with_what_helps(registry: ToolRegistry) -> None:
    with pytest.raises(ToolNotFound, match="Pass the agent with its tools, or define the tool in a module") as raised:
        registry.resolve(function_spec("__main__:count_words"))
    assert raised.value.tool_name == "count_words"
    assert "allow_imports" not in str(raised.value), "that would not help"


def test_a_tool_that_is_gone_from_its_module_is_named_with_its_place(registry: ToolRegistry) -> None:
    with pytest.raises(ToolNotFound, match=f"'{__name__}:gone' is not there. Was it renamed"):
        registry.resolve(function_spec(f"{__name__}:gone"))


def test_a_module_does_not_import_more_because_a_log_asks_it_for_a_name(
    registry: ToolRegistry, on_the_path: Callable[[str, str], None]
) -> None:
    on_the_path("stranger.py", "def __getattr__(name):\n    raise SystemExit('asked')\n")
    registry.allow_imports("stranger")
    with pytest.raises(ToolNotFound):
        registry.resolve(function_spec("stranger:hello"))


def test_an_allowed_module_is_imported_and_those_inside_it_too_but_no_namesake(
    registry: ToolRegistry, on_the_path: Callable[[str, str], None]
) -> None:
    on_the_path("friendly/__init__.py", "")
    on_the_path("friendly/tools.py", TOOLS)
    on_the_path("friendly_stranger.py", TOOLS)
    registry.allow_imports("friendly")
    assert registry.resolve(function_spec("friendly.tools:hello")).name == "hello"
    with pytest.raises(ToolNotFound, match="allow_imports"):
        registry.resolve(function_spec("friendly_stranger:hello"))
    with pytest.raises(ToolNotFound, match="can't be imported"):
        registry.resolve(function_spec("friendly.missing:hello"))


def test_an_installed_distribution_declares_factories_and_modules(
    registry: ToolRegistry, on_the_path: Callable[[str, str], None]
) -> None:
    on_the_path("friendly_tools.py", TOOLS)
    on_the_path("friendly_more.py", TOOLS)
    on_the_path("friendly_tools-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: friendly-tools\nVersion: 1.0\n")
    on_the_path(
        "friendly_tools-1.0.dist-info/entry_points.txt",
        "[agentcore.tools]\n"
        "friendly.think = friendly_tools:think_tool\n"
        "friendly.hello = friendly_tools:hello\n"
        "friendly.gone = friendly_tools:gone\n"
        "friendly.functions = friendly_more\n",
    )
    assert registry.resolve(ToolSpec(name="friendly.think")).name == "think"
    assert registry.resolve(ToolSpec(name="friendly.hello")).name == "hello"
    assert registry.resolve(function_spec("friendly_more:hello")).name == "hello"
    with pytest.raises(ToolNotFound, match="'friendly_tools:gone'"):
        registry.resolve(ToolSpec(name="friendly.gone"))
    with pytest.raises(ToolNotFound, match="register_tool"):
        registry.resolve(ToolSpec(name="friendly.functions"))


def test_a_name_that_two_distributions_declare_is_nobodys(
    registry: ToolRegistry, on_the_path: Callable[[str, str], None]
) -> None:
    for distribution, value in (("friendly_a", "friendly_a:think_tool"), ("friendly_b", "friendly_b:hello")):
        on_the_path(f"{distribution}.py", TOOLS)
        on_the_path(
            f"{distribution}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        on_the_path(f"{distribution}-1.0.dist-info/entry_points.txt", f"[agentcore.tools]\nfriendly.twice = {value}\n")
    with pytest.raises(ToolNotFound, match=r"friendly_a:think_tool, friendly_b:hello"):
        registry.resolve(ToolSpec(name="friendly.twice"))
