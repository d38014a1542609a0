"""The outcome of a run: a few lines for people, and the exit code.

0    finished
1    an error: the model, the log, a bug
2    wrong arguments or settings
3    waiting for approval, or for an answer
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
    console: Console, short_id: str, result: RunResult, view: View, settings: Settings, *, seconds: float
) -> None:
    """Print the status and the usage, and below them the next command."""
    between = f" {Glyphs(console.encoding).between} "
    used = [count(view.steps, "step"), duration(seconds)]
    if view.usage.total_tokens or view.usage.known_cost:
        used.insert(1, spent(view.usage))
    heading = _describe(result)
    print_text(console, heading.append(f"{between}{between.join(used)}", DIM))
    label, arguments, note = _next_command(short_id, result)
    line = styled(f"{label}: ", DIM).append(settings.command(arguments))
    print_line(console, line.append(f"  ({note})", DIM) if note else line)


def _describe(result: RunResult) -> Text:
    code, detail = ("", "") if result.error is None else (result.error.code, f": {printable(result.error.detail)}")
    match result.status:
        case ConversationStatus.FINISHED:
            return styled("finished", f"{STRONG} {GOOD}")
        case ConversationStatus.WAITING_FOR_CONFIRMATION:
            return styled(_describe_waiting(result), f"{STRONG} {WARN}")
        case ConversationStatus.STUCK:
            return styled(f"stuck{detail}", f"{STRONG} {BAD}")
        case ConversationStatus.ERROR if code in _LIMITS:
            return styled(f"stopped{detail}", f"{STRONG} {WARN}")
        case ConversationStatus.ERROR:
            return styled("failed", f"{STRONG} {BAD}")
        case _:
            return styled("interrupted; progress is saved", f"{STRONG} {WARN}")


def _describe_waiting(result: RunResult) -> str:
    questions = len(result.questions)
    calls = len(result.pending) - questions
    parts = [f"approval ({count(calls, 'call')})"] if calls or not questions else []
    if questions:
        parts.append(f"an answer ({count(questions, 'question')})")
    return f"waiting for {' and '.join(parts)}"


def _next_command(short_id: str, result: RunResult) -> tuple[str, str, str]:
    """Return what the most useful command is for, its arguments, and a note about others."""
    resume = f"resume {short_id}"
    code = "" if result.error is None else result.error.code
    match result.status:
        case ConversationStatus.FINISHED:
            return "log", f"log show {short_id}", ""
        case ConversationStatus.WAITING_FOR_CONFIRMATION:
            if len(result.questions) == len(result.pending):
                return "answer", resume, "or --answer TEXT, --reject REASON"
            return "decide", resume, "or --approve, --reject REASON"
        case ConversationStatus.STUCK:
            return "continue with a hint", f"{resume} 'your message'", ""
        case ConversationStatus.ERROR if (flag := _LIMITS.get(code)) is not None:
            return "continue", f"{resume} {flag} none", "" if code == "cost_unknown" else "or a new limit"
        case _:
            return "continue", resume, ""
