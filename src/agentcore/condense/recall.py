"""The tool with which an agent searches and reads what it is not shown any more.

An agent with a condenser always has it, so that its list of tools does not change at a cut. It reads the log; nothing is
kept for it.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pydantic import ConfigDict, Field
from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator, core_schema, to_json

from agentcore._ranking import MOST_TERMS, rank
from agentcore._text import OUTPUT_LIMIT, clip
from agentcore._threads import Threads
from agentcore.errors import ToolError
from agentcore.events import (
    ActionEvent,
    AgentErrorEvent,
    ContextAdded,
    Event,
    MessageEvent,
    ObservationEvent,
    UserRejectObservation,
)
from agentcore.tools import Action, TextObservation, Tool, ToolAnnotations, ToolContext, ToolSpec

_SEARCHES: Final = Threads("recall", 2)
_MOST_SEARCHED: Final = 50_000_000
"""Characters, the newest ones: so much is searched in well under a second."""
_AROUND: Final = 150
"""Characters of an excerpt on each side of what was found."""
_NOTHING: Final = "Nothing was forgotten or left out: you are shown the whole conversation."


class RecallAction(Action):
    """A search in what is not shown any more, or a look at events by their number."""

    model_config = ConfigDict(use_attribute_docstrings=False)

    query: str | None = Field(default=None, description="Words to search for, or with regex=true a regular expression.")
    regex: bool = Field(
        default=False, description="Read query as a regular expression without lookaround and backreferences."
    )
    limit: int = Field(default=10, ge=1, le=50, description="The most hits to list.")
    seq: int | None = Field(default=None, ge=1, description="Read the event of this number whole; hits name it.")
    count: int = Field(default=1, ge=1, le=50, description="How many events to read, from seq on.")


class Entry(NamedTuple):
    """A part of the log that can be recalled."""

    seq: int
    kind: str
    """Who said it, or which tool was called or answered."""
    text: str


def recall_tool() -> Tool[RecallAction, TextObservation]:
    """Make the tool with which an agent searches and reads what was forgotten of its history, or left out."""
    return Tool(
        name="recall",
        description=(
            "Search or read earlier parts of this conversation that you are not shown any more, because they were summarised, "
            "forgotten or left out. Search with query; read events whole with seq and count."
        ),
        action=RecallAction,
        execute=_recall,
        annotations=ToolAnnotations(
            title="Recall", read_only=True, destructive=False, idempotent=True, open_world=False
        ),
        resources=(),
        ignored=("security_risk",),
        spec=ToolSpec(name="recall"),
    )


async def _recall(action: RecallAction, ctx: ToolContext) -> TextObservation:
    state, mask = ctx.state, ctx.secrets.mask
    branch = state.branch_events()
    if action.seq is not None:
        text = await _SEARCHES.run(_read, branch, action.seq, action.count, abandon_on_cancel=True)
        # A secret may have become known since it was recorded: masks first, and then the cut.
        return TextObservation(text=clip(text, OUTPUT_LIMIT, mask=mask))
    if action.query is None or not action.query.strip():
        raise ToolError("Pass query to search what is not shown any more, or seq to read an event.")
    shown = {event.id for event in state.shown} - set(state.masked)
    find = _regex_search(action.query) if action.regex else _word_search(action.query)

    def search() -> str:
        entries, complete = _entries(branch, shown)
        if not entries:
            return _NOTHING
        found = find(entries)
        part = "" if complete else " (the newest part of them)"
        head = f"{len(found)} of {len(entries)} events that are not shown{part} match"
        rows = [
            f"[seq {entry.seq}] {entry.kind}: {_excerpt(mask(entry.text), at)}" for entry, at in found[: action.limit]
        ]
        if not rows:
            return f"{head}. Try other words."
        return "\n".join([f"{head}; read one whole with seq:", *rows])

    return TextObservation(text=await _SEARCHES.run(search, abandon_on_cancel=True))


Found = list[tuple[Entry, re.Pattern[str] | None]]
"""Entries, the best first, and what is found in each."""


def _word_search(query: str) -> Callable[[Sequence[Entry]], Found]:
    """Search for words, ranked by BM25."""
    terms = list(dict.fromkeys(re.findall(r"\w+", query.lower())))[:MOST_TERMS]
    if not terms:
        raise ToolError(f"There is no word in {query!r}. Use regex=true to search for signs.")
    place = re.compile("|".join(map(re.escape, terms)), re.IGNORECASE)

    def find(entries: Sequence[Entry]) -> Found:
        ranked = rank(terms, (f"{entry.kind} {entry.text}".lower() for entry in entries))
        ranked.sort(reverse=True)  # of equal ones the newest first
        return [(entries[index], place) for _, index in ranked]

    return find


def _regex_search(pattern: str) -> Callable[[Sequence[Entry]], Found]:
    """Search by a pattern, the newest first. The engine is pydantic's: it needs time in proportion to the text, with any pattern."""
    try:
        matches = SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
    except PatternError as error:
        # pydantic's frame and a drawing of the place come first; the last line is the reason.
        reason = str(error).splitlines()[-1].strip().removeprefix("SchemaError:").removeprefix("error:").strip(" .")
        raise ToolError(f"{pattern!r} is not a regular expression that can be used here: {reason[:300]}.") from error

    def find(entries: Sequence[Entry]) -> Found:
        found: Found = []
        for entry in reversed(entries):
            if matches(entry.text):
                line = next((line for line in entry.text.splitlines() if matches(line)), "")
                found.append((entry, re.compile(re.escape(line.strip()[:_AROUND])) if line.strip() else None))
        return found

    return find


def _entries(branch: Sequence[Event], shown: set[str]) -> tuple[list[Entry], bool]:
    """Return what is not shown, in order, and whether that is all of it: it is bounded, the newest first."""
    entries: list[Entry] = []
    size = 0
    for event in reversed(branch):
        if event.id in shown or (entry := _entry(event)) is None:
            continue
        size += len(entry.text)
        if size > _MOST_SEARCHED and entries:
            return entries[::-1], False
        entries.append(entry)
    return entries[::-1], True


def _read(branch: Sequence[Event], seq: int, count: int) -> str:
    parts: list[str] = []
    for event in branch:
        if event.seq >= seq and len(parts) < count and (entry := _entry(event)) is not None:
            parts.append(f"[seq {entry.seq}] {entry.kind}:\n{entry.text}")
    if not parts:
        raise ToolError(f"There is no message, call or answer at seq {seq} or after it.")
    return "\n\n".join(parts)


def _entry(event: Event) -> Entry | None:
    match event:
        case MessageEvent():
            return Entry(event.seq, event.source, event.text)
        case ActionEvent():
            words = f"{event.thought}\n" if event.thought else ""
            arguments = event.malformed or to_json(event.arguments).decode()
            return Entry(event.seq, f"call of {event.tool_name}", f"{words}{arguments}")
        case ObservationEvent():
            return Entry(event.seq, f"answer of {event.tool_name}", event.text)
        case AgentErrorEvent():
            return Entry(event.seq, f"answer of {event.tool_name}", event.error)
        case UserRejectObservation():
            what = "Not allowed" if event.question is None else "Not answered"
            return Entry(event.seq, f"answer of {event.tool_name}", f"{what} by the user: {event.reason}")
        case ContextAdded():
            return Entry(event.seq, event.name, event.text)
        case _:
            return None


def _excerpt(text: str, at: re.Pattern[str] | None) -> str:
    found = at.search(text) if at is not None else None
    start = 0 if found is None else max(found.start() - _AROUND, 0)
    end = (found.end() if found is not None else 0) + _AROUND
    part = " ".join(text[start:end].split())
    return f"{'...' if start else ''}{part}{'...' if end < len(text) else ''}"
