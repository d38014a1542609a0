"""Names of tools: what a provider takes, and never one for two tools."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.mcp.names import tool_name

PARTS = st.one_of(st.text("ab_-.", min_size=1, max_size=5), st.text(min_size=1, max_size=70))


def test_a_plain_name_is_read_back_from_it() -> None:
    assert tool_name("github", "create_issue") == "mcp__github__create_issue"


@pytest.mark.parametrize(("server", "tool"), [("a.b", "c"), ("a", "b/c"), ("a", "x" * 60), ("a__b", "c"), ("a_", "b")])
def test_a_name_that_could_not_be_read_back_ends_in_a_hash(server: str, tool: str) -> None:
    assert re.fullmatch(r"mcp__[a-zA-Z0-9_-]{1,50}_[0-9a-f]{8}", tool_name(server, tool))


def test_a_tool_that_is_called_like_the_hashed_name_of_another_gets_a_name_of_its_own() -> None:
    hashed = tool_name("s", "a.b")
    assert tool_name("s", hashed.removeprefix("mcp__s__")) != hashed


@given(PARTS, PARTS, PARTS, PARTS)
def test_two_tools_never_have_one_name(server: str, tool: str, other_server: str, other_tool: str) -> None:
    one, other = tool_name(server, tool), tool_name(other_server, other_tool)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one)
    assert (one == other) == ((server, tool) == (other_server, other_tool))
