"""The context of an agent: its sections, what is refused, and the texts that come with agentcore."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agentcore import Agent, AgentContext
from agentcore.agent import record_agent, restore_agent
from agentcore.context import DEFAULT_PROMPT, VARIANTS, ProjectFiles, example_calls, read_sections
from agentcore.context.examples import example_arguments
from agentcore.llm import LLM
from agentcore.messages import ToolSchema
from agentcore.schema import schema_errors
from agentcore.tools import finish_tool, think_tool
from agentcore_tools import coding_tools

new: Any = AgentContext
"""The types would refuse most of what is tried here."""


def test_without_arguments_it_is_the_default_prompt() -> None:
    assert AgentContext().prompt == DEFAULT_PROMPT
    assert list(AgentContext().sections) == ["role", "working", "care", "finishing"]


def test_sections_are_replaced_added_and_left_out_in_their_order() -> None:
    context = AgentContext(replace={"role": "You mend ships."}, add={"tone": "Be kind."}, drop=["care"])
    assert list(context.sections) == ["role", "working", "finishing", "tone"]
    assert context.prompt.startswith("You mend ships.\n\nHow to work\n")
    assert context.prompt.endswith("\n\nBe kind.")


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "default"])
def test_a_variant_names_no_tool_but_finish_and_says_what_no_agent_may_do(variant: str) -> None:
    context = AgentContext(variant=variant)
    assert next(iter(context.sections)) == "role"
    assert set(re.findall(r"`(\w+)`", context.prompt)) == {"finish"}
    assert "<secret:NAME>" in context.sections["care"]
    assert context.prompt != DEFAULT_PROMPT


def test_a_file_is_read_by_its_headings(tmp_path: Path) -> None:
    path = tmp_path / "ship.md"
    path.write_text("You sail.\n\n# Care #\n## Of people\n```sh\n# no heading\n```\n\n# empty\n\n# Finishing\nLand.\n")
    context = AgentContext(variant=path, drop=["finishing"])
    assert dict(context.sections) == {"role": "You sail.", "care": "## Of people\n```sh\n# no heading\n```"}
    assert AgentContext(variant=str(path)).sections["finishing"] == "Land."


def test_sections_that_cannot_be_told_apart_or_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Two sections are called 'a': give each heading another name"):
        read_sections("# a\none\n# A\ntwo\n")
    with pytest.raises(ValueError, match="There is no text in it"):
        read_sections("# a\n\n")
    path = tmp_path / "odd.md"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"The prompt '.*odd\.md' can't be used: .*utf-8"):
        AgentContext(variant=path)
    path.write_bytes(b"x" * (256 * 1024 + 1))
    with pytest.raises(ValueError, match="is larger than 256 KiB"):
        AgentContext(variant=path)
    with pytest.raises(FileNotFoundError):
        AgentContext(variant=tmp_path / "none.md")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"drop": ["finising"]}, "`drop` names a section 'finising' that there is not: did you mean 'finishing'?"),
        ({"replace": {"workin": "x"}}, "`replace` names a section 'workin' that there is not: did you mean 'working'?"),
        (
            {"replace": {"zzz": "x"}},
            "`replace` names a section 'zzz' that there is not: there are 'role', 'working', 'care', 'finishing'.",
        ),
        ({"add": {"role": "x"}}, "There is a section 'role' already: pass its new text as replace={'role': ...}."),
        ({"variant": "cloude"}, "`variant` names a variant 'cloude' that there is not: did you mean 'claude'?"),
    ],
)
def test_a_name_that_there_is_not_is_refused_with_the_one_that_was_meant(
    arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        new(**arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"drop": "care"}, "`drop` must be a list of names of sections, not 'care'. Put it in a list: drop=['care']."),
        ({"date": 1}, "`date` must be True or False, not 1."),
        ({"replace": {"role": 1}}, "`replace` must be a mapping of text to text, not {'role': 1}."),
        ({"sources": ["AGENTS.md"]}, "`sources` must be a list of context sources, as [ProjectFiles()], not"),
        ({"source": ()}, "AgentContext has no argument `source`: did you mean `sources`?"),
    ],
)
def test_a_wrong_value_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TypeError, match=re.escape(sentence)):
        new(**arguments)


def test_the_record_of_a_file_is_its_text_so_that_a_log_names_no_path(tmp_path: Path) -> None:
    path = tmp_path / "ship.md"
    path.write_text("You sail.\n")
    recorded, missing = record_agent(Agent(llm=LLM(model="openai/gpt-5"), context=AgentContext(variant=path)))
    path.unlink()
    assert (recorded["context"], missing) == ({"sections": [["role", "You sail."]]}, ())
    again = restore_agent(recorded)
    assert again.context is not None
    assert again.context.prompt == "You sail."
    with pytest.raises(ValueError, match="names a variant '/etc/passwd', which is not here"):
        restore_agent({**recorded, "context": {"variant": "/etc/passwd"}})


def test_the_examples_of_all_tools_that_come_with_agentcore_fit_their_schemas() -> None:
    schemas = [tool.schema for tool in (*coding_tools(), finish_tool(None), think_tool())]
    for schema in schemas:
        example = example_arguments(schema.parameters)
        assert example is not None, schema.name
        assert schema_errors(schema.parameters, example) == []
    text = example_calls(schemas)
    assert text is not None
    assert '- finish: {"message": "Done."}' in text


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "object", "properties": {"n": {"type": "integer", "minimum": 5}}, "required": ["n"]}, {"n": 5}),
        ({"type": "object", "properties": {"e": {"enum": ["x", "y"]}}, "required": ["e"]}, {"e": "x"}),
        ({"type": "object", "properties": {"e": {"type": "string", "maxLength": 2}}, "required": ["e"]}, {"e": "te"}),
        (
            {
                "type": "object",
                "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/I"}, "minItems": 2}},
                "required": ["items"],
                "$defs": {"I": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}},
            },
            {"items": [{"ok": True}, {"ok": True}]},
        ),
        ({"type": "object", "properties": {"e": {"type": "string", "pattern": "^z$"}}, "required": ["e"]}, None),
        ({"type": "object", "properties": {"e": {"$ref": "#/$defs/none"}}, "required": ["e"]}, None),
        ({"type": "object", "properties": {"e": {"$ref": "#"}}, "required": ["e"]}, None),
        ({"type": "object", "properties": {"e": {"anyOf": [{"type": "null"}]}}, "required": ["e"]}, {"e": None}),
        ({"type": 3}, None),
    ],
)
def test_an_example_fits_its_schema_or_there_is_none(schema: dict[str, Any], example: dict[str, Any] | None) -> None:
    assert example_arguments(schema) == example


def test_there_are_no_examples_where_none_fits() -> None:
    odd: dict[str, Any] = {
        "type": "object",
        "properties": {"e": {"type": "string", "pattern": "^z$"}},
        "required": ["e"],
    }
    assert example_calls([ToolSchema(name="a", description="", parameters=odd)]) is None


@pytest.mark.parametrize("variant", ["books.md", "openai/gpt-5"])
def test_a_variant_that_is_no_file_says_that_it_was_taken_for_one_and_names_the_variants(variant: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"Markdown file.*claude, gpt, gemini.*" + variant):
        AgentContext(variant=variant)


def test_what_would_do_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="both name the section 'care'"):
        AgentContext(replace={"care": "Take care."}, drop=["care"])
    with pytest.raises(ValueError, match="Two sources are called 'project files'"):
        AgentContext(sources=[ProjectFiles(), ProjectFiles()])
    for context in (AgentContext(replace={"care": "x"}), AgentContext(drop=["care"]), AgentContext(variant="gpt")):
        with pytest.raises(ValueError, match="pass one of the two"):
            Agent(llm=LLM(model="openai/gpt-5"), system_prompt="You mend ships.", context=context)
    Agent(
        llm=LLM(model="openai/gpt-5"), system_prompt="You mend ships.", context=AgentContext(sources=[ProjectFiles()])
    )
