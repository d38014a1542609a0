"""The facts that the log knows of a forgotten part of the history, written by code: tasks, words, files, skills.

Above: the condensers, which put it before a summary, or in its place. It is made of the events that are forgotten now and of
the facts that an earlier condensation recorded, so that it costs what is new. All of it is masked: it comes from the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import JsonValue

from agentcore.condense.outline import Outline, OutlineItem
from agentcore.events import Condensation, ContextAdded, MessageEvent, ObservationEvent

FACTS: Final = "facts"
"""The name in `Condensation.fields` under which they are recorded."""
_MOST_FILES: Final = 100
_SKILL: Final = "skill:"
_LEAST_CLIPPED: Final = 200
"""Characters: less of a message than this says nothing."""
_MARKS: Final = {"todo": "[ ]", "in_progress": "[~]", "done": "[x]"}
_CHANGES: Final = ("created", "changed", "moved", "removed")


@dataclass(frozen=True, slots=True)
class Words:
    """A message of the user that the model is not shown any more."""

    seq: int
    """Where it is in the log."""
    text: str
    clipped: bool = False
    """True if its end is left out, because it was too long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """The facts that the log knows of what is forgotten."""

    tasks: Sequence[Mapping[str, Any]] = ()
    """The whole task list as it is now: title, notes and status of each."""
    words: Sequence[Words] = ()
    """The user's messages, in order."""
    left_out: int = 0
    """How many earlier messages of the user had no room here."""
    changed: Sequence[str] = ()
    """The files that were changed, the newest last."""
    read: Sequence[str] = ()
    """The files that were read and not changed, the newest last."""
    skills: Sequence[str] = ()
    """The skills that were active."""

    def to_fields(self) -> dict[str, JsonValue]:
        """Return them as `Condensation.fields` holds them."""
        return {
            "tasks": [dict(task) for task in self.tasks],
            "words": [{"seq": each.seq, "text": each.text, "clipped": each.clipped} for each in self.words],
            "left_out": self.left_out,
            "changed": list(self.changed),
            "read": list(self.read),
            "skills": list(self.skills),
        }

    def to_text(self, *, recall: bool = True) -> str:
        """Return them as the model reads them; empty where there are none.

        Args:
            recall: Say how `recall` reads what is left out: the agent has it.
        """
        sections = (
            ("Tasks", "\n".join(_task_lines(self.tasks))),
            ("Earlier messages of the user", _words_text(self, recall=recall)),
            ("Files that were changed", "\n".join(f"- {path}" for path in self.changed)),
            ("Files that were read", "\n".join(f"- {path}" for path in self.read)),
            ("Skills that were active", _skills_text(self.skills)),
        )
        return "\n\n".join(f"## {heading}\n{text}" for heading, text in sections if text)


def gather_facts(outline: Outline, forgotten: Iterable[OutlineItem], *, most: int) -> Facts:
    """Gather what the log knows of these items.

    Args:
        outline: The history.
        forgotten: The items that are going to be forgotten; facts that a summary among them recorded are carried over.
        most: The most tokens that the user's words may take; the oldest ones are left out first.
    """
    words: list[Words] = []
    left_out = 0
    files: dict[str, bool] = {}
    skills: dict[str, None] = {}
    for item in forgotten:
        for event in item.view.events:
            match event:
                case Condensation():
                    earlier = _read(event.fields.get(FACTS))
                    words += earlier.words
                    left_out += earlier.left_out
                    _note(files, earlier.read, changed=False)
                    _note(files, earlier.changed, changed=True)
                    skills |= dict.fromkeys(earlier.skills)
                case MessageEvent(source="user") if event.text.strip():
                    words.append(Words(event.seq, event.text))
                case ObservationEvent() if not event.is_error:
                    for path, changed in _files_of(event.data):
                        _note(files, (path,), changed=changed)
                case ContextAdded() if event.name.startswith(_SKILL):
                    skills[event.name.removeprefix(_SKILL)] = None
                case _:
                    pass
    words, cut = _bounded(outline, words, most)
    newest = list(files.items())[-_MOST_FILES:]
    return Facts(
        tasks=_tasks(outline),
        words=words,
        left_out=left_out + cut,
        changed=[path for path, changed in newest if changed],
        read=[path for path, changed in newest if not changed],
        skills=list(skills),
    )


def _bounded(outline: Outline, words: list[Words], most: int) -> tuple[list[Words], int]:
    """Return the newest words that have room, and how many have none."""
    kept: list[Words] = []
    left = most
    for each in reversed(words):
        size = outline.tokens_of(each.text)
        if size > left:
            end = len(each.text) * max(left, 0) // size
            if not kept and end >= _LEAST_CLIPPED:
                # It was masked when it was recorded, so that no half of a secret is left here.
                kept.append(replace(each, text=each.text[:end], clipped=True))
            break
        kept.append(each)
        left -= size
    kept.reverse()
    return kept, len(words) - len(kept)


def _note(files: dict[str, bool], paths: Iterable[str], *, changed: bool) -> None:
    """Put files at the end; one that was changed once stays so."""
    for path in paths:
        files[path] = files.pop(path, False) or changed


def _files_of(data: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Return the files that an answer's data names, and whether each was changed."""
    several: Any = data.get("files")
    entries: list[Any] = [data, *(cast("list[Any]", several) if isinstance(several, list) else ())]
    for entry in entries:
        match entry:
            case {"path": str(path), "outcome": str(outcome)} if outcome in _CHANGES:
                yield path, True
                if isinstance(moved := cast("dict[str, Any]", entry).get("moved_to"), str):
                    yield moved, True
            case {"path": str(path), "outcome": "viewed"} | {"path": str(path), "lines": int()}:
                yield path, False
            case _:
                pass


def _tasks(outline: Outline) -> list[Mapping[str, Any]]:
    data = outline.state.last_data("task_tracker") or {}
    return _mappings(data.get("tasks"))


def _task_lines(tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for number, task in enumerate(tasks, 1):
        yield f"{number}. {_MARKS.get(str(task.get('status')), '[ ]')} {task.get('title')}"
        yield from (f"   {line}" for line in str(task.get("notes") or "").splitlines())


def _words_text(facts: Facts, *, recall: bool) -> str:
    lines: list[str] = []
    if facts.left_out:
        count = "1 older message is" if facts.left_out == 1 else f"{facts.left_out} older messages are"
        lines.append(f"({count} left out here{'; `recall` finds and reads them' if recall else ''}.)")
    for each in facts.words:
        reads = f'; `recall` with "seq" {each.seq} reads it' if recall else ""
        more = f"\n(The rest is left out{reads}.)" if each.clipped else ""
        lines.append(f'<message seq="{each.seq}">\n{each.text}{more}\n</message>')
    return "\n".join(lines)


def _skills_text(skills: Sequence[str]) -> str:
    if not skills:
        return ""
    return f"{', '.join(skills)}\nTheir texts are not shown any more. Activate one again before you follow it."


def _read(recorded: JsonValue) -> Facts:
    """Read what an earlier condensation recorded; what is not as it should be is passed over."""
    if not isinstance(recorded, dict):
        return Facts()
    left_out = recorded.get("left_out")
    return Facts(
        words=[
            Words(each["seq"], each["text"], each.get("clipped") is True)
            for each in _mappings(recorded.get("words"))
            if isinstance(each.get("seq"), int) and isinstance(each.get("text"), str)
        ],
        left_out=left_out if isinstance(left_out, int) else 0,
        changed=_texts(recorded.get("changed")),
        read=_texts(recorded.get("read")),
        skills=_texts(recorded.get("skills")),
    )


def _mappings(value: JsonValue) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: JsonValue) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
