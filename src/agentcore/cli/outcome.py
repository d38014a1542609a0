"""The outcome of a run: a few lines for people, and the exit code.

0    finished
1    an error: the model, the log, a bug
2    wrong arguments or settings
3    waiting for approval
4    paused: interrupted; `agentcore resume` continues
5    stuck: the agent repeated itself
6    a limit was reached
130  quit by a second Ctrl-C; 143 and 129 after SIGTERM and SIGHUP
"""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, STRONG, WARN, Glyphs, print_line, print_text, styled
from agentcore.cli.settings import Settings
from agentcore.cli.text import count, duration, printable, spent
from agentcore.cli.view import View
from agentcore.conversation import RunResult
from agentcore.events import ConversationStatus

_LIMITS: Final = {
    "steps": "--max-steps",
    "cost": "--max-cost",
    "cost_unknown": "--max-cost",
    "tokens": None,
    "step_seconds": None,
    "run_seconds": None,
    "conversation_seconds": None,
}
"""The error codes of limits, and the flags that set them."""


def exit_code(result: RunResult) -> int:
    """Return the exit code of a result."""
    match result.status:
        case ConversationStatus.FINISHED:
            return 0
        case ConversationStatus.WAITING_FOR_CONFIRMATION:
            return 3
        case ConversationStatus.STUCK:
            return 5
        case ConversationStatus.ERROR:
            return 6 if result.error is not None and result.error.code in _LIMITS else 1
        case _:
            return 4


def print_outcome(
    console: Console, conversation_id: str, result: RunResult, view: View, settings: Settings, *, seconds: float
) -> None:
    """Print the status, the usage, and the next commands."""
    between = f" {Glyphs(console.encoding).between} "
    used = [count(view.steps, "step"), duration(seconds)]
    if view.usage.total_tokens or view.usage.known_cost:
        used.insert(1, spent(view.usage))
    heading, advice = _describe(conversation_id, result, settings)
    print_text(console, heading.append(f"{between}{between.join(used)}", DIM))
    for line in (*advice, ("log", settings.command(f"log show {conversation_id}"))):
        print_line(console, styled(f"{line[0]}: ", DIM).append(line[1]))


def _describe(conversation_id: str, result: RunResult, settings: Settings) -> tuple[Text, list[tuple[str, str]]]:
    resume = settings.command(f"resume {conversation_id}")
    hints = [("continue", resume)]
    code, detail = ("", "") if result.error is None else (result.error.code, f": {printable(result.error.detail)}")
    match result.status:
        case ConversationStatus.FINISHED:
            return styled("finished", f"{STRONG} {GOOD}"), []
        case ConversationStatus.WAITING_FOR_CONFIRMATION:
            waiting = f"waiting for approval ({count(len(result.pending), 'call')})"
            advice = [("decide", f"{resume}  (all calls: --approve or --reject REASON)")]
            return styled(waiting, f"{STRONG} {WARN}"), advice
        case ConversationStatus.STUCK:
            return styled(f"stuck{detail}", f"{STRONG} {BAD}"), [("continue with a hint", f"{resume} 'your message'")]
        case ConversationStatus.ERROR if code in _LIMITS:
            if (flag := _LIMITS[code]) is not None:
                hints = [("continue without the limit", f"{resume} {flag} none")]
                if code != "cost_unknown":
                    hints.insert(0, ("continue with a new limit", f"{resume} {flag} ..."))
            return styled(f"stopped{detail}", f"{STRONG} {WARN}"), hints
        case ConversationStatus.ERROR:
            return styled("failed", f"{STRONG} {BAD}"), hints
        case _:
            return styled("interrupted; progress is saved", f"{STRONG} {WARN}"), hints
