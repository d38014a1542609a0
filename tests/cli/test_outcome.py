from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from agentcore.cli import outcome
from agentcore.cli.outcome import exit_code, print_outcome
from agentcore.cli.settings import Settings
from agentcore.cli.view import View
from agentcore.conversation import RunFailure, RunResult
from agentcore.events import ConversationStatus
from agentcore.usage import Limits

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def result(status: ConversationStatus, code: str | None = None) -> RunResult:
    return RunResult(status=status, error=None if code is None else RunFailure(code=code, detail="why"))


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (ConversationStatus.FINISHED, None, 0),
        (ConversationStatus.ERROR, "AuthenticationError", 1),
        (ConversationStatus.WAITING_FOR_CONFIRMATION, None, 3),
        (ConversationStatus.PAUSED, None, 4),
        (ConversationStatus.PAUSED, "closed", 4),
        (ConversationStatus.IDLE, None, 4),
        (ConversationStatus.STUCK, "repeated_action", 5),
        (ConversationStatus.ERROR, "cost_unknown", 6),
        *((ConversationStatus.ERROR, limit, 6) for limit in Limits.model_fields if limit != "call_seconds"),
    ],
)
def test_the_exit_code_tells_the_outcome(status: ConversationStatus, code: str | None, expected: int) -> None:
    assert exit_code(result(status, code)) == expected


@pytest.mark.parametrize("status", list(ConversationStatus))
def test_what_is_left_to_do_is_said_for_every_outcome(status: ConversationStatus) -> None:
    console = Console(file=io.StringIO(), highlight=False)
    settings = Settings(home="/h", home_flag="/h")
    print_outcome(console, "the-id", result(status, "x"), View(console), settings, seconds=1)
    assert isinstance(console.file, io.StringIO)
    _, hint = console.file.getvalue().splitlines()
    finished = status is ConversationStatus.FINISHED
    assert f"agentcore {'log show' if finished else 'resume'} the-id" in hint
    assert " --home /h" in hint


def test_the_documented_exit_codes_are_those_of_the_code() -> None:
    said = set(re.findall(r"^ *(\d+)  ", outcome.__doc__ or "", re.MULTILINE))
    documented = set(re.findall(r"^\| (\d+) \|", DOCS.read_text("utf-8"), re.MULTILINE))
    assert said == {"0", "1", "2", "3", "4", "5", "6", "130"}
    assert said <= documented
