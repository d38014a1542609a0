"""A skill: what its file says of it, read leniently. The strict rules of the specification are in `check.py`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from agentcore._text import remove_invisible
from agentcore.skills.frontmatter import Field, Frontmatter, Malformed, read_frontmatter

Origin: TypeAlias = Literal["project", "user", "package"]
"""Where a skill comes from; what is left wins over what is right of it."""

MOST_BYTES: Final = 128 * 1024
"""The largest file that is read as a skill."""

MOST_NAME: Final = 64
MOST_DESCRIPTION: Final = 1_024
_MOST_ITEMS: Final = 100
_MOST_ITEM: Final = 200

# What can stand in `/name`, in a list and in the name of a part, and nothing that leads anywhere as a path.
_USABLE: Final = re.compile(r"\w[\w-]*(?:\.[\w-]+)*")
_TRUE: Final = frozenset({"true", "yes", "on"})


class Input(NamedTuple):
    """An argument of a skill."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill, without its text: that is read when it is needed."""

    name: str
    description: str
    """One line; empty where there is none."""
    origin: Origin
    label: str
    """Where it comes from, for people and the model: "project", "user" or "package NAME"."""
    path: str
    """The path of its file."""
    where: str
    """That path, shortened for people."""
    is_folder: bool
    """True for a folder with a SKILL.md, false for a single Markdown file."""
    triggers: tuple[str, ...] = ()
    """Words in a user's message that activate it."""
    inputs: tuple[Input, ...] = ()
    """Its arguments, in their order."""
    paths: tuple[str, ...] = ()
    """Globs as in a `.gitignore`: touching a file that one matches activates it."""
    always: bool = False
    """It is in the prompt from the beginning."""
    callable: bool = True
    """The model may ask for it."""

    @property
    def part(self) -> str:
        """The name of the part of context that shows it."""
        return f"skill:{self.name}"

    @property
    def folder(self) -> str:
        """The folder of its file."""
        return self.path.rpartition("/")[0]

    @property
    def activation(self) -> str:
        """Its ways of activation, in words."""
        ways = ["always"] if self.always else []
        ways += ["skill tool"] if self.callable and not self.always else []
        ways += [f"/{self.name}"]
        ways += [f"words: {', '.join(self.triggers)}"] if self.triggers else []
        ways += [f"paths: {', '.join(self.paths)}"] if self.paths else []
        return "; ".join(ways)


def one_line(text: str, limit: int) -> str:
    """Return material as one line that nothing hides in."""
    line = " ".join(remove_invisible(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def decode(data: bytes) -> str:
    """Return the text of a file.

    Raises:
        Malformed: It is not text.
    """
    if b"\0" in data:
        raise Malformed(1, "Not a text file.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Malformed(data[: error.start].count(b"\n") + 1, "Not UTF-8.") from error
    return text.replace("\r\n", "\n")


class Source(NamedTuple):
    """The place of a skill's file."""

    origin: Origin
    label: str
    path: str
    where: str

    @property
    def is_folder(self) -> bool:
        """True for the SKILL.md of a folder."""
        return is_skill_file(self.path.rpartition("/")[2])

    @property
    def expected(self) -> str:
        """The name that the folder or the file has."""
        folder, _, name = self.path.rpartition("/")
        return folder.rpartition("/")[2] if self.is_folder else name.rpartition(".")[0]


def is_skill_file(name: str) -> bool:
    """Return whether a file of this name makes its folder a skill."""
    return name in {"SKILL.md", "skill.md"}


def read_skill(text: str, source: Source) -> tuple[Skill, list[Malformed]]:
    """Return the skill of a file, leniently: what is understood is used. The list names what was changed.

    Raises:
        Malformed: It is not a skill, or has no name that can be used.
    """
    front = read_frontmatter(text)
    if front is None and source.is_folder:
        raise Malformed(1, "There is no frontmatter: the first line has to be `---`.")
    front = front or Frontmatter({}, {}, (), text)
    notes = [Malformed(1, "Invisible characters were removed.")] if remove_invisible(text) != text else []
    description = one_line(text_field(front, "description"), MOST_DESCRIPTION)
    if source.is_folder and not description:
        raise Malformed(
            front.lines.get("description", 1), "There is no `description`, which says when to use the skill."
        )
    words = items_of(front, "triggers")
    paths = items_of(front, "paths", commas=True)
    inputs = tuple(_inputs(front))
    is_task = text_field(front, "type") == "task"
    triggers = tuple(word for word in words if not word.startswith("/"))
    always = not source.is_folder and (
        text_field(front, "type") == "repo"
        or source.expected == "repo"
        or not (words or paths or inputs or is_task or text_field(front, "type") == "knowledge")
    )
    skill = Skill(
        name=usable_name(front, source, notes),
        description=description,
        origin=source.origin,
        label=source.label,
        path=source.path,
        where=source.where,
        is_folder=source.is_folder,
        triggers=triggers,
        inputs=inputs,
        paths=paths,
        always=always,
        callable=text_field(front, "disable-model-invocation").lower() not in _TRUE,
    )
    return skill, notes


def body_of(text: str) -> str:
    """Return the instructions of a skill's file.

    Raises:
        Malformed: It is not a skill any more.
    """
    front = read_frontmatter(text)
    return remove_invisible(text if front is None else front.body).strip()


def usable_name(front: Frontmatter, source: Source, notes: list[Malformed]) -> str:
    """Return the name of a skill: the one in its frontmatter, or else that of its folder or file.

    Raises:
        Malformed: Neither can be used.
    """
    for name in (normalize(text_field(front, "name")), normalize(source.expected)):
        if len(name) <= MOST_NAME and _USABLE.fullmatch(name):
            return name
        if name:
            line = front.lines.get("name", 1)
            notes.append(Malformed(line, f"{one_line(name, 80)!r} can't be the name of a skill, so its file names it."))
    raise Malformed(
        front.lines.get("name", 1),
        f"{one_line(text_field(front, 'name') or source.expected, 80)!r} can't be the name of a skill: "
        f"use up to {MOST_NAME} letters, digits and '-'.",
    )


def normalize(name: str) -> str:
    """Return a name as names are compared."""
    return unicodedata.normalize("NFKC", name)


def text_field(front: Frontmatter, field: str) -> str:
    """Return a field that is text; empty where it is not there, or something else."""
    value = front.fields.get(field, "")
    return value.strip() if isinstance(value, str) else ""


def items_of(front: Frontmatter, field: str, *, commas: bool = False) -> tuple[str, ...]:
    """Return a field that is a list of texts, or one text; with `commas`, one text is several."""
    value: Field = front.fields.get(field, "")
    if isinstance(value, str):
        value = [*value.split(",")] if commas else [value]
    texts = (each.strip() for each in value if isinstance(each, str)) if isinstance(value, list) else ()
    return tuple(one_line(each, _MOST_ITEM) for each in texts if each)[:_MOST_ITEMS]


def _inputs(front: Frontmatter) -> Iterator[Input]:
    value: Field = front.fields.get("inputs", "")
    for each in value[:_MOST_ITEMS] if isinstance(value, list) else ():
        if isinstance(each, str):
            yield Input(one_line(each, MOST_NAME), "")
        elif isinstance(each, dict) and isinstance(name := each.get("name"), str):
            description = each.get("description", "")
            yield Input(
                one_line(name, MOST_NAME), one_line(description if isinstance(description, str) else "", _MOST_ITEM)
            )
