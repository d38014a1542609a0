"""What a run came to, for a person: a few lines, and the exit code.

0    finished
1    an error: the model, the log, a bug
2    it can't be done as it was asked: arguments, settings
3    it waits for a person's yes or no
4    paused: it was interrupted, and goes on with `agentcore resume`
5    stuck: it went in circles
6    a limit was reached
130  left at once, by a second Ctrl-C; 143 and 129 after SIGTERM and SIGHUP
"""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, STRONG, WARN, Glyphs, say, say_words, styled
from agentcore.cli.settings import Settings
from agentcore.cli.text import count, duration, printable, spent
from agentcore.cli.view import View
from agentcore.conversation import RunResult
from agentcore.events import ConversationStatus

LEFT_AT_ONCE: Final = 130

_LIMITS: Final = {
    "steps": "--max-steps",
    "cost": "--max-cost",
    "cost_unknown": "--max-cost",
    "tokens": None,
    "step_seconds": None,
    "run_seconds": None,
    "conversation_seconds": None,
}
"""The codes of limits, and the flag that sets them."""


def exit_code(result: RunResult) -> int:
    """Give the exit code."""
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


def say_outcome(
    console: Console, conversation_id: str, result: RunResult, view: View, settings: Settings, *, seconds: float
) -> None:
    """Print how it ended, what it used, and what to do now."""
    between = f" {Glyphs(console.encoding).between} "
    used = [count(view.steps, "step"), duration(seconds)]
    if view.usage.total_tokens or view.usage.known_cost:
        used.insert(1, spent(view.usage))
    heading, advice = _say(conversation_id, result, settings)
    say_words(console, heading.append(f"{between}{between.join(used)}", DIM))
    for line in (*advice, ("read it", settings.command(f"log show {conversation_id}"))):
        say(console, styled(f"{line[0]}: ", DIM).append(line[1]))


def _say(conversation_id: str, result: RunResult, settings: Settings) -> tuple[Text, list[tuple[str, str]]]:
    resume = settings.command(f"resume {conversation_id}")
    go_on = [("go on", resume)]
    detail = "" if result.error is None else f": {printable(result.error.detail)}"
    match result.status:
        case ConversationStatus.FINISHED:
            said = styled("finished", f"{STRONG} {GOOD}"), list[tuple[str, str]]()
        case ConversationStatus.WAITING_FOR_CONFIRMATION:
            waiting = f"waits for your yes or no to {count(len(result.pending), 'call')}"
            advice = [
                ("decide", resume),
                ("or to all", f"{resume} --approve"),
                ("or", f"{resume} --reject 'why not'"),
            ]
            said = styled(waiting, f"{STRONG} {WARN}"), advice
        case ConversationStatus.STUCK:
            advice = [("tell it what to do instead", f"{resume} 'your words'")]
            said = styled(f"stuck{detail}", f"{STRONG} {BAD}"), advice
        case ConversationStatus.ERROR:
            flag = _LIMITS.get(result.error.code) if result.error is not None else None
            if result.error is not None and result.error.code in _LIMITS:
                raised = go_on
                if flag is not None:
                    raised = [("go on without a limit", f"{resume} {flag} none")]
                    if result.error.code != "cost_unknown":
                        raised.insert(0, ("go on with another limit", f"{resume} {flag} ..."))
                said = styled(f"stopped{detail}", f"{STRONG} {WARN}"), raised
            else:
                said = styled("failed", f"{STRONG} {BAD}"), go_on
        case _:
            said = styled("interrupted, and everything so far is kept", f"{STRONG} {WARN}"), go_on
    return said
