"""The names that were replaced, and the first words of docstrings, that are not to come back to `src`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

REPLACED = {
    "normalize, alias": "mend MEND _do_mend Alias",
    "model_accepts, last_data": "takes latest_data",
    "AllowedPaths": "Reach",
    "full_output_path, OutputFile, stdout_path": "whole_at Whole stdout_at",
    "FALLBACK_ERRORS": "MOVES_ON",
    "ReentrantCall, reentrancy, forbid_reentry": "InsideConversation refuse_inside",
    "supports_response_schema": "held_to_schemas holds_to_schemas",
    "ScriptedReply, truncated, stream_truncated": "Said broken_off",
    "call_tasks, CallBatch, RunningCall": "hands _Crew _Hand",
    "tool_sessions, ToolSessions, ToolSession": "bench ToolBench _Owner",
    "LoopAffinity, check_loop, loop_closed": "Home refuse_elsewhere is_gone",
    "Setup.validate": "check_given",
    "safe_str, safe_repr, format_tool_error": "telling text_of repr_of",
    "leaf_exceptions, exception_to_raise, spurious_cancellation": "leaves_of to_raise cancelled_itself",
    "ReplyStreamer, DeltaBroadcast": "ReplyVoice DeltaHub",
    "HeadSignal": "Bell",
    "end_turn, active_turn": "settle turn_under_way",
    "pending_unchanged, is_at_rest, select_pending, validate_arguments": "_still _rests _fitting",
    "RunTimer.set_limits, _update_deadline, resume": "WorkClock hold_to _aim go_on",
    "immediately_runnable": "starts_at_once",
    "failure_reported, to_retry, delete_error": "told rerun undeleted",
    "BufferedStream, ObservedStream, FailoverStream, FifoLock.acquire": "ToldStream WatchedStream Attempts Turns",
    "IdentityCache, PrefixCache": "Kept Beginnings",
    "DECODE_ERRORS": "MISSHAPEN",
    "ProviderError(.message, .matches), extract_message": "Refusal said tells said_in_body",
    "ClaudeCapabilities, capabilities_for": "Ways ways_of",
    "argument_error": "misfit",
    "ProcessTree, process_table.snapshot, ProcessInfo, descendants": "Family census Seen offspring",
    "reap, PendingProcess": "afterwards Handover",
    "ack_line": "answer_line",
    "render_call, EventRenderer, RenderedEvent, Runner": "say_call Teller Told _Work",
}
"""The words to write -> the names that they replaced.

Names that were replaced in one place and are plain words elsewhere (`say`, `stop`, `keep`, `describe`, `family`, `inside`,
`answered`, `fit`, `shown`, `Page`, ...) are not among them.
"""

KEPT = {"agentcore/cli": {"Home"}}
"""Names that mean something else in one folder: the home of the command line is the folder with its conversations."""

INSTEAD = {old: new for new, olds in REPLACED.items() for old in olds.split()}

OPENING = re.compile(r"(What|Gives?|Says?|Tells?|Whether)\b")
"""How a docstring does not begin: "Return ..." or "The ..." names what is there, and these do not."""


def names_in(tree: ast.AST) -> Iterator[str]:
    """Return every identifier of a module, those in f-strings included."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name, asname=other):
                yield from name.split(".")
                if other is not None:
                    yield other
            case ast.ImportFrom(module=str(name)):
                yield from name.split(".")
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case _:
                pass


def docstrings_in(tree: ast.AST) -> Iterator[str]:
    """Return the docstrings of a module, its classes and functions, and the sentences below fields.

    Below a field "Whether ..." is the plainest beginning that there is, so that such a sentence is left out.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for place, statement in enumerate(node.body):
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        if place == 0 or not text.startswith("Whether"):
                            yield text
                    case _:
                        pass


@cache
def trees() -> list[tuple[str, ast.AST]]:
    """Return each module of `src` by its path."""
    return [
        (path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(SOURCE.rglob("*.py"))
    ]


def test_no_replaced_name_comes_back() -> None:
    back = {
        path: {name: f"write {INSTEAD[name]}" for name in used}
        for path, tree in trees()
        if (
            used := INSTEAD.keys()
            & {*path.removesuffix(".py").split("/"), *names_in(tree)} - KEPT.get(path.rpartition("/")[0], set())
        )
    }
    assert back == {}


def test_no_docstring_begins_with_what_give_say_tell_or_whether() -> None:
    assert [
        (path, text) for path, tree in trees() for text in docstrings_in(tree) if OPENING.match(text.lstrip())
    ] == []


def test_names_are_found_wherever_they_can_stand() -> None:
    program = """
import a.mend as Reach
def told(hands, *, bench): return f"{x.takes} {call(go_on=1)}"
class Told: offspring: int
match x:
    case [rerun, *census]: pass
"""
    expected = {"mend", "Reach", "told", "hands", "bench", "takes", "go_on", "Told", "offspring", "rerun", "census"}
    assert INSTEAD.keys() & set(names_in(ast.parse(program))) == expected


def test_docstrings_are_found_and_a_field_may_say_whether() -> None:
    program = '"""What."""\nclass A:\n    """Tell."""\n    a: int\n    """Whether."""\n    b: int\n    """Give."""\n'
    begin = [text for text in docstrings_in(ast.parse(program)) if OPENING.match(text)]
    assert begin == ["What.", "Tell.", "Give."]
