"""Masking comes before cutting: whatever is cut, and wherever, at most a few characters of a secret are left, by chance."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from agentcore import ActionEvent, Agent, Conversation, ToolContext
from agentcore.assessment import Assessment
from agentcore.errors import BadRequest, RunError
from agentcore.ids import new_id
from agentcore.llm import LLM
from agentcore.messages import ToolCallBlock
from agentcore.security import Check, CheckContext
from agentcore.testing import ScriptedLLM, calls, say, serve_provider
from agentcore.tools import AnyTool, raw_tool, tool
from agentcore.workspace import LocalWorkspace, Workspace
from agentcore_tools import apply_patch_tool, glob_tool, grep_tool, run_tool

# Any six characters of it have a "_", so that none is a part of an id by chance.
TOKEN = "ghp_01234_56789_abcde_fABCD_EFGHI_JKLMN_OPQRS_TUVWX_YZ"
REST = "y" * 5_000


def padded(before: int, after: str = REST) -> str:
    return "x" * before + TOKEN + after


@tool
async def fail(before: int) -> str:
    """Fail with a long text."""
    raise ValueError(padded(before, "y" * 50_000))


@tool
async def count(n: int) -> str:
    """Count."""
    return str(n)


def asks(name: str, arguments: dict[str, JsonValue] | str) -> ToolCallBlock:
    return ToolCallBlock(id=new_id("c"), name=name, arguments=arguments)


async def left_after(
    made: Iterable[ToolCallBlock],
    tools: Sequence[AnyTool] = (),
    confirm: Check | None = None,
    folder: str | Workspace = ".",
) -> str:
    """Make the calls, in one reply, and return all that the log and the model got."""
    llm = ScriptedLLM([calls(*made), say("done")])
    agent = Agent(llm=llm, tools=tools)
    async with Conversation(agent, workspace=folder, secrets={"TOKEN": TOKEN}, confirm=confirm) as conversation:
        await conversation.run("go")
        logged = [event.model_dump_json() for event in conversation.state.events]
    asked = [message.model_dump_json() for request in llm.requests for message in request.messages]
    return "\n".join([*logged, *asked])


def leaked(text: str) -> list[str]:
    """Return the parts of the token, of 6 characters, that are in a text."""
    return [part for at in range(len(TOKEN) - 5) if (part := TOKEN[at : at + 6]) in text]


# Around each limit: 200, 2,000 and 30,000 characters, of which the beginning and the end are shown.
PLACES = (70, 90, 120, 150, 180, 900, 920, 940, 960, 1_940, 1_960, 1_980)


async def test_errors_of_tools_are_masked_before_they_are_cut() -> None:
    script = [asks("fail", {"before": before}) for before in range(14_850, 15_050, 40)]
    assert leaked(await left_after(script, [fail])) == []


async def test_what_is_quoted_of_calls_that_cannot_run_is_masked_before_it_is_cut() -> None:
    wrong = [asks("count", {"n": padded(before)}) for before in PLACES]
    broken = [asks("count", '{"n": "' + padded(before)) for before in PLACES]
    unknown = [asks("another", {"n": padded(before)}) for before in PLACES]
    names = [asks(padded(before, "/"), {}) for before in (0, 20, 40)]
    assert leaked(await left_after([*wrong, *broken, *unknown, *names], [count])) == []


async def test_arguments_that_do_not_fit_a_schema_are_masked_before_they_are_cut() -> None:
    async def never(action: dict[str, JsonValue], ctx: ToolContext) -> str:
        raise AssertionError

    raw = raw_tool("raw", "Raw.", {"properties": {"n": {"type": "integer"}}, "additionalProperties": False}, never)
    script = [asks("raw", {"n": padded(before)}) for before in PLACES]
    script += [asks("raw", {padded(before): 1}) for before in PLACES]
    assert leaked(await left_after(script, [raw])) == []


@pytest.mark.parametrize("body", ["json", "page"])
async def test_errors_of_providers_are_masked_before_they_are_cut(body: str) -> None:
    head = "<html>" if body == "page" else ""
    for before in (240, 270, 1_940, 1_960, 1_980):
        async with serve_provider([BadRequest(head + padded(before))], api_key="k") as provider:
            llm = LLM(model="any", base_url=provider.base_url, api_key="k", num_retries=0)
            async with Conversation(Agent(llm=llm), secrets={"TOKEN": TOKEN}) as conversation:
                with pytest.raises(RunError) as caught:
                    await conversation.run("go")
                logged = "".join(event.model_dump_json() for event in conversation.state.events)
        assert leaked(logged + str(caught.value)) == []


@pytest.mark.parametrize("program", ["rg", "python3"])
async def test_lines_that_grep_cuts_are_masked_before(program: str, tmp_path: Path) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    root, programs = tmp_path / "root", tmp_path / "programs"
    root.mkdir()
    programs.mkdir()
    for name in ("bash", "sh", "find", "xargs", "tr", "stat", "readlink", "cat"):
        (programs / name).symlink_to(shutil.which(name) or "")
    (programs / program).symlink_to(found)
    for before in range(440, 500, 7):
        (root / f"{before}.txt").write_text(f"needle{padded(before)}\n")
    (root / "full.txt").write_text("needle" + TOKEN * 2_000)
    async with LocalWorkspace(root, env={"PATH": str(programs)}) as workspace:
        text = await left_after([asks("grep", {"pattern": "needle"})], [grep_tool()], folder=workspace)
    assert "[... the line goes on]" in text
    assert leaked(text) == []


@pytest.mark.slow
async def test_what_tools_quote_in_their_errors_is_masked_before_it_is_cut() -> None:
    script = [
        asks("apply_patch", {"patch": f"*** Begin Patch\n*** Update File: a\n{padded(before)}\n"}) for before in PLACES
    ]
    script += [asks("glob", {"pattern": "{" * 200 + padded(before)}) for before in (0, 150, 190)]
    script += [asks("run", {"command": ["/nonexistent/program", padded(before)]}) for before in PLACES]
    script += [asks("grep", {"pattern": padded(before, REST + "(")}) for before in (3_900, 3_970)]
    tools = [apply_patch_tool(), glob_tool(), run_tool(), grep_tool()]
    assert leaked(await left_after(script, tools)) == []


async def test_reasons_of_checks_are_masked_before_they_are_cut() -> None:
    class Broken:
        name = "broken"
        timeout = 1.0

        def assess(self, action: ActionEvent, context: CheckContext) -> Assessment | None:
            raise ValueError(padded(int(str(action.arguments["n"]))))

    text = await left_after([asks("count", {"n": before}) for before in range(420, 500, 11)], [count], Broken())
    assert leaked(text) == []
