"""Secrets of several lines, as private keys are: tools show their lines with something before them, or some of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore import Agent, Conversation
from agentcore.secrets import Masker
from agentcore.testing import ScriptedLLM, ScriptedReply, call, say
from agentcore_tools import file_editor_tool, grep_tool, terminal_tool

LINES = [f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAABFwAAAAdz/+{number:02}" for number in range(6)]
HEADER, FOOTER = "-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"
KEY = "\n".join([HEADER, *LINES, FOOTER, ""])


@pytest.mark.parametrize(
    "shows",
    [
        call("file_editor", command="view", path="key"),
        call("grep", pattern="b3B"),
        call("terminal", command="echo $KEY; head -3 key; diff /dev/null key; cat -n key; tail -4 key"),
    ],
)
async def test_tools_that_show_lines_do_not_show_those_of_a_private_key(shows: ScriptedReply, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    agent = Agent(llm=ScriptedLLM([shows, say("done")]), tools=[file_editor_tool(), grep_tool(), terminal_tool()])
    async with Conversation(agent, workspace=str(tmp_path), secrets={"KEY": KEY}) as conversation:
        deltas = conversation.deltas()
        await conversation.run("go")
        text = "".join(event.model_dump_json() for event in conversation.state.events)
    text += "".join([delta.text async for delta in deltas])
    assert "<secret:KEY>" in text
    assert not [line for line in LINES if line[:30] in text or line[-16:] in text]


def test_the_header_of_a_key_and_its_short_lines_are_left() -> None:
    masker = Masker([("KEY", f"{HEADER}\nshort line\n{LINES[0]}\n")])
    assert masker.mask_text(f"{HEADER}, short line, {LINES[0]}") == f"{HEADER}, short line, <secret:KEY>"


def test_a_line_in_arguments_is_not_taken_for_the_value() -> None:
    assert Masker([("KEY", KEY)])._scanner.replace_restorably(LINES[0]) == "<secret:KEY:encoded>"  # pyright: ignore[reportPrivateUsage]
