"""A summary in place of the oldest part of a history: what the log knows, and what a model writes under fixed headings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import JsonValue

from agentcore._arguments import MODEL, NUMBER, TEXT_BY_NAME, checked, optional
from agentcore.condense.condenser import CondenserSpec
from agentcore.condense.outline import Outline, OutlineItem
from agentcore.condense.window import (
    DOWN_TO,
    SOFT,
    all_but_last,
    facts_for,
    forgotten_sentence,
    is_due,
    oldest,
    target_of,
)
from agentcore.errors import ContextWindowExceeded, ModelError
from agentcore.events import Condensation
from agentcore.llm import Model, record_model

SUMMARY: Final = "summary"
"""The name in `Condensation.fields` under which the model's part is recorded."""

SUMMARY_FIELDS: Final[Mapping[str, str]] = {
    "Goal": "what the user wants in the end, and every condition that still holds",
    "Done": "what was done, with its outcome",
    "State of the code": "the files, functions and settings that matter, and what is in them now",
    "Tests": "which were run, by which command, and how they ended",
    "Decisions": "what was decided and why, and what was tried and did not work",
    "Next steps": "what comes next, in order, beginning with what was under way",
    "Open problems": "errors, doubts and questions that are not settled, with the exact messages",
}
"""The headings of a summary, and what the model is asked to write under each."""

_ASKED: Final = """\
(This is not from the user. The conversation has become too long, so everything above, except the first and the newest message \
of the user, is going to be replaced by a summary that you write now. You go on with the work from it, and see nothing else of \
what happened.

Write the summary in Markdown, in at most {words} words. Use exactly these headings, and leave out those for which there is \
nothing:

{headings}

Keep names as they are: paths, identifiers, commands, ids, numbers, addresses, error messages. Where a summary of an earlier \
part stands above, take over what still holds of it. {known}Do not call a tool.)"""
_KNOWN: Final = "The task list, the user's own messages, and the names of the files are added to it without you: do not repeat them. "
_WORDS_PER_TOKEN: Final = 0.75
_PART: Final = 0.25
"""The part of the target that the model's words should take at most."""
_FEWEST_WORDS: Final = 150
_MOST_WORDS: Final = 2_000
_HEADING: Final = re.compile(r"#{1,6}\s+(?P<marked>\S.*)|\*\*(?P<bold>[^*]+)\*\*\s*:?")
"""Of a line without the spaces around it. A model writes what it likes: no two parts of this fit the same characters."""
_NOTES: Final = "Notes"
"""Where what stands under no heading goes."""
_NOTHING: Final = frozenset({"", "none", "nothing", "n/a", "-", "(none)"})


@checked(llm=optional(MODEL), fields=optional(TEXT_BY_NAME), soft=NUMBER, down_to=NUMBER)
@dataclass(frozen=True, kw_only=True)
class Summary:
    """Puts a summary in place of the oldest part of the history when that is large.

    What the log knows (tasks, the user's words, files touched, active skills) is written by code; the rest a model writes.
    A new summary takes the place of the earlier ones.

    Raises:
        TypeError: An argument is not what it has to be.
        ValueError: `soft` and `down_to` are not parts of 1, the second one smaller.
    """

    llm: Model | None = None
    """The model that writes it; None is the agent's, which has the history in its provider's cache."""
    fields: Mapping[str, str] | None = None
    """Headings, and what to write under each; None is `SUMMARY_FIELDS`."""
    soft: float = SOFT
    """The part of the room at which the history is made shorter."""
    down_to: float = DOWN_TO
    """The part of the room that is left of it then, at most. A fifth of it is the end of the history, word for word."""

    def __post_init__(self) -> None:
        check_parts(self.soft, self.down_to)

    async def condense(self, outline: Outline) -> Condensation | None:
        """Ask for a summary of what is oldest.

        Raises:
            ModelError: The model wrote none.
        """
        if not is_due(outline, self.soft) or not (items := to_summarise(outline, self.down_to)):
            return None
        fields = self.fields or SUMMARY_FIELDS
        headings = "\n".join(f"## {name}\n({words})" for name, words in fields.items())
        limit = word_limit(outline, self.down_to)
        words = _ASKED.format(words=limit, headings=headings, known=_KNOWN)
        items, written = await ask_for_summary(outline, items, words, self.llm)
        parsed = _parse(written, tuple(fields))
        text = "\n\n".join(f"## {name}\n{part}" for name, part in parsed.items())
        return forget_with(outline, items, text, cast("dict[str, JsonValue]", parsed))

    def record(self) -> CondenserSpec | None:
        """Return its parameters; None where its model cannot be recorded."""
        return record_asking("summary", self, fields=None if self.fields is None else dict(self.fields))


def check_parts(soft: float, down_to: float) -> None:
    """Refuse limits that no history could keep.

    Raises:
        ValueError: They are not parts of 1, the second one smaller.
    """
    if not 0 < down_to < soft <= 1:
        raise ValueError(f"soft={soft:g} and down_to={down_to:g} must be parts of the room: 0 < down_to < soft <= 1.")


def record_asking(name: str, condenser: Any, **params: JsonValue) -> CondenserSpec | None:
    """Return the record of a condenser that asks a model; None where that model cannot be recorded."""
    params |= {"soft": condenser.soft, "down_to": condenser.down_to}
    if condenser.llm is not None:
        if (llm := record_model(condenser.llm)) is None:
            return None
        params["llm"] = llm
    return CondenserSpec(name=name, params={key: value for key, value in params.items() if value is not None})


def to_summarise(outline: Outline, down_to: float) -> list[OutlineItem]:
    """Return all items but the end of the history, and every earlier summary: the new one absorbs them.

    More than it takes to come down to the target: each cut costs the provider's cache of all that is behind it, and the
    summary of twice as much is hardly longer.
    """
    if not oldest(outline, down_to):
        return []
    chosen = set(map(id, all_but_last(outline, target_of(outline, down_to))))
    return [item for item in outline.items if id(item) in chosen or (item.kind == "summary" and not item.protected)]


def word_limit(outline: Outline, down_to: float) -> int:
    """Return how many words a model should write at most."""
    words = round(target_of(outline, down_to) * _PART * _WORDS_PER_TOKEN)
    return min(max(words, _FEWEST_WORDS), _MOST_WORDS)


async def ask_for_summary(
    outline: Outline, items: Sequence[OutlineItem], words: str, llm: Model | None
) -> tuple[list[OutlineItem], str]:
    """Ask a model about these items, and return those that it has read, with its words.

    Raises:
        ModelError: There is no reply, or it has no words.
    """
    end = _end_of(outline, items)
    try:
        reply = await outline.ask(words, before=end, llm=llm)
    except ContextWindowExceeded:
        # Too much for the model that writes. Once more with the older half; what it does not read is not forgotten.
        half = sum(item.tokens for item in outline.items[:end]) / 2
        seen: set[int] = set()
        size = 0
        for item in outline.items[:end]:
            if (size := size + item.tokens) > half:
                break
            seen.add(id(item))
        items = [item for item in items if id(item) in seen]
        if not items:
            raise
        reply = await outline.ask(words, before=_end_of(outline, items), llm=llm)
    text = reply.message.text.strip()
    if reply.message.tool_calls or not text:
        instead = "called a tool instead" if reply.message.tool_calls else "answered without words"
        raise ModelError(f"{reply.model} was asked for a summary of the history, and {instead}.", model=reply.model)
    return list(items), text


def forget_with(
    outline: Outline, items: Sequence[OutlineItem], text: str, fields: dict[str, JsonValue]
) -> Condensation:
    """Forget items, with what the log knows of them and these words in their place."""
    known, known_fields = facts_for(outline, items)
    summary = "\n\n".join(filter(None, (forgotten_sentence(outline), known, text)))
    return outline.forget(items, summary=summary, fields={**known_fields, SUMMARY: fields})


def _end_of(outline: Outline, items: Sequence[OutlineItem]) -> int:
    """Return the index after the last of these items."""
    last = items[-1]
    return next(index for index, item in enumerate(outline.items, 1) if item is last)


def _parse(written: str, names: Sequence[str]) -> dict[str, str]:
    """Read the parts of a summary by their headings, in the order that was asked for; nothing that was written is lost."""
    known = {name.casefold(): name for name in names}
    parts: dict[str, list[str]] = {name: [] for name in names}
    parts.setdefault(_NOTES, [])
    current = _NOTES
    for line in written.splitlines():
        found = _HEADING.fullmatch(line.strip())
        heading = (found["marked"] or found["bold"]).strip(" *:_`#").casefold() if found else ""
        if heading in known:
            current = known[heading]
            continue
        if found and found["marked"] and line.lstrip().startswith(("# ", "## ")):
            current = _NOTES  # a heading of the model's own
        parts[current].append(line)
    if all(not line.strip() or line.lstrip().startswith("#") for line in parts[_NOTES]):
        del parts[_NOTES]  # a title, and nothing under it
    read = {name: "\n".join(lines).strip() for name, lines in parts.items()}
    return {name: text for name, text in read.items() if text.casefold().strip(" .") not in _NOTHING}
