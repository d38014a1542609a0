"""Searching a catalogue of tools: names first, then words; what is shown is bounded, and what is not shown is named."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore._text import Mask, already_masked
from agentcore.errors import ToolError
from agentcore.tools import AnyTool, raw_tool
from agentcore.tools.catalogue import FoundTools, ToolCatalogue


async def never(arguments: Any, ctx: Any) -> None:
    raise AssertionError


def made(name: str, description: str = "", *parameters: str) -> AnyTool:
    properties = {each: {"type": "string"} for each in parameters}
    return raw_tool(name, description, {"type": "object", "properties": properties}, never)


ISSUES = [
    made("github__create_issue", "Open a new issue in a repository.", "owner", "title"),
    made("github__list_issues", "List the issues of a repository.", "owner", "state"),
    made("github__merge", "Merge a pull request.", "owner", "number"),
]
FILES = [
    made("files__read", "Read a file from the disk.", "path"),
    made("files__move", "Move a file to another folder.", "source", "destination"),
]
CATALOGUE = ToolCatalogue({"github": ISSUES, "files": FILES})


def search(
    query: str,
    catalogue: ToolCatalogue = CATALOGUE,
    *,
    limit: int = 10,
    toolset: str | None = None,
    mask: Mask = already_masked,
) -> FoundTools:
    return catalogue.search(query, limit=limit, toolset=toolset, mask=mask)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("merge a pull request", "github__merge"),
        ("destination", "files__move"),
        ("move the files", "files__move"),
        ("new issues", "github__create_issue"),
        ("Github Create-Issue", "github__create_issue"),
    ],
)
def test_the_best_one_is_found_by_words_of_its_name_its_description_and_its_parameters(query: str, found: str) -> None:
    assert next(iter(search(query).described)) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("files__read", ["files__read"]),
        ("FILES--READ", ["files__read"]),
        ("github__merge, files__move", ["github__merge", "files__move"]),
        ("files__read pull", ["files__read", "files__move", "github__merge"]),
    ],
)
def test_tools_that_are_named_come_first_and_alone_where_nothing_else_is_asked_for(
    query: str, found: list[str]
) -> None:
    assert list(search(query).described) == found


def test_a_tool_is_described_as_the_provider_would_be_sent_it_and_its_digest_is_noted() -> None:
    (tool,) = FILES[:1]
    found = search("files__read")
    assert found.described == {"files__read": tool.schema.digest}
    assert found.text == (
        "1 of 5 tools match, the best first:\n\n"
        '{"name": "files__read", "description": "Read a file from the disk.", '
        '"parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}'
    )


def test_what_is_beyond_the_limit_is_named_and_not_described() -> None:
    found = search("file", limit=1)
    assert list(found.described) == ["files__read"]
    assert found.text.endswith("search for the name of one to see its parameters: files__move")


def test_one_toolset_is_searched_alone_and_listed() -> None:
    assert list(search("owner read", toolset="files").described) == ["files__read"]
    assert search("github__merge", toolset="files").described == {}
    listed = search("", toolset="files").text.splitlines()
    assert listed[1:] == ["- files__read: Read a file from the disk.", "- files__move: Move a file to another folder."]
    with pytest.raises(ToolError, match=r"There is no toolset 'jira'. There are: 'github', 'files'."):
        search("issue", toolset="jira")


def test_an_empty_query_counts_the_tools_of_each_toolset_and_names_them() -> None:
    found = search(" ")
    assert found.described == {}
    assert found.text.splitlines() == [
        "5 tools. Pass query to search them, or toolset to list those of one.",
        "- github (3): github__create_issue, github__list_issues, github__merge",
        "- files (2): files__read, files__move",
    ]


def test_nothing_that_matches_is_said_with_what_to_do() -> None:
    for query in ("zebra", "!?"):
        assert search(query).text.startswith("None of 5 tools matches. Try other words")
    assert "0 tools" in search("", ToolCatalogue()).text


def test_ten_thousand_tools_with_long_descriptions_fit_into_an_answer() -> None:
    tools = [made(f"tool_{n}", f"Does thing {n}. " + "It is long. " * 900) for n in range(10_000)]
    catalogue = ToolCatalogue({"huge": tools, **{f"other {n}": [] for n in range(500)}})
    assert 10_000 < len(search("thing", catalogue, limit=50).text) < 25_000
    assert len(search("", catalogue).text) <= 20_000
    assert len(search("", catalogue, toolset="huge").text) < 22_000
    assert search("", catalogue, toolset="huge").text.endswith(" more are not listed.]")


def test_one_that_is_larger_than_an_answer_is_shown_cut_where_it_is_asked_for() -> None:
    catalogue = ToolCatalogue({"huge": [made("huge", "word " * 20_000), made("small", "A word.")]})
    assert list(search("word", catalogue).described) in (["small"], ["huge"])
    found = search("huge", catalogue)
    assert list(found.described) == ["huge"]
    assert "characters (" in found.text
    assert len(found.text) < 21_000


def test_secrets_are_masked_before_anything_is_cut() -> None:
    catalogue = ToolCatalogue({"hunter2": [made("tool", "Opens with hunter2. " * 2_000)]})

    def mask(text: str) -> str:
        return text.replace("hunter2", "***")

    for query, toolset in (("tool", None), ("", None), ("", "hunter2")):
        text = search(query, catalogue, toolset=toolset, mask=mask).text
        assert "***" in text
        assert "hunter" not in text


def test_half_of_a_character_in_a_description_is_replaced() -> None:
    search("tool", ToolCatalogue({"odd": [made("tool", "half \ud800")]})).text.encode()


def test_the_same_tools_are_the_same_catalogue() -> None:
    assert CATALOGUE.is_of({"github": list(ISSUES), "files": list(FILES)})
    assert not CATALOGUE.is_of({"github": ISSUES, "files": [FILES[0], made("files__move")]})
    assert not CATALOGUE.is_of({"github": ISSUES})
