"""An output that takes no more, as on a full disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full on this system")


async def test_a_run_whose_output_is_full_says_so_and_which_conversation_is_kept(cli: Cli) -> None:
    program = ["bash", "-c", '"$@" > /dev/full', "-", *cli.scripted('["Done."]'), "--id", "kept"]
    ended = await cli.run(program=program)
    assert ended.code == 1
    said = " ".join(ended.err.split())
    assert "error: What is printed can't be written: No space left on device. Conversation kept is kept" in said
    assert "resume kept" in said
    assert (await cli.run("log", "verify", "kept")).code == 0


async def test_a_list_whose_output_is_full_says_so(cli: Cli) -> None:
    await cli.play('["Done."]')
    ended = await cli.run(program=["bash", "-c", '"$@" > /dev/full', "-", *cli.command("conversations")])
    assert (ended.code, ended.err) == (1, "error: What is printed can't be written: No space left on device.\n")
