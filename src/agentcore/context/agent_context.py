"""The context of an agent: the sections of its prompt, and what it is shown besides. A value, as the agent is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NoReturn, cast

from pydantic import JsonValue

from agentcore._arguments import FLAG, TEXT, TEXT_BY_NAME, Argument, checked, has_methods, optional
from agentcore.context.facts import Today, WorkspaceFacts
from agentcore.context.sections import VARIANTS, join_sections, read_variant
from agentcore.context.source import ContextSource, SourceSpec, resolve_context_source


def _is_variant(value: object) -> bool:
    return isinstance(value, str | os.PathLike) or TEXT_BY_NAME.accepts(value)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_list_of_names(value: object) -> bool:
    return _is_list(value) and all(isinstance(name, str) for name in cast("Iterable[Any]", value))


def _list_the_name(value: object) -> str | None:
    return f"Put it in a list: drop=[{value!r}]." if isinstance(value, str) else None


def _is_source(value: object) -> bool:
    return has_methods(value, "name", "open", "record")


def _is_list_of_sources(value: object) -> bool:
    return _is_list(value) and all(map(_is_source, cast("Iterable[Any]", value)))


def _list_the_source(value: object) -> str | None:
    return "Put it in a list: sources=[...]." if _is_source(value) else None


_ARGUMENTS: Final = {
    "variant": optional(
        Argument("the name of a variant, the path of a Markdown file, or sections by name", _is_variant)
    ),
    "replace": TEXT_BY_NAME,
    "add": TEXT_BY_NAME,
    "drop": Argument("a list of names of sections", _is_list_of_names, _list_the_name),
    "sources": Argument("a list of context sources, as [ProjectFiles()]", _is_list_of_sources, _list_the_source),
    "message_prefix": optional(TEXT),
    "message_suffix": optional(TEXT),
    "facts": FLAG,
    "date": FLAG,
    "examples": FLAG,
}


@checked(**_ARGUMENTS)
@dataclass(frozen=True, kw_only=True)
class AgentContext:
    """The sections of a prompt, and what is shown besides: `Agent(context=AgentContext(...))`. Nothing is read that is not named here.

    Raises:
        TypeError: an argument is not what it has to be, or there is none of that name.
        ValueError: there is no such variant or section, or a name is taken.
        OSError: the file that `variant` names can't be read.
    """

    variant: str | os.PathLike[str] | Mapping[str, str] | None = None
    """The prompt to begin with: "default" (also None), "claude", "gpt", "gemini", "small", "planning"; the path of a Markdown
    file, which is read here and now, and whose headings of the first level name its sections; or the sections themselves."""
    replace: Mapping[str, str] = field(default_factory=dict[str, str])
    """Texts in place of sections, by their names. `AgentContext().sections` has those of the default prompt."""
    add: Mapping[str, str] = field(default_factory=dict[str, str])
    """More sections, behind the others."""
    drop: Sequence[str] = ()
    """The names of sections to leave out."""
    sources: Sequence[ContextSource] = ()
    """Project files, memory, skills: read when a conversation is opened, and after its history was cut or rewound."""
    message_prefix: str | None = None
    """Put before each message of the user, where it is sent to the model; the log has the user's own words."""
    message_suffix: str | None = None
    """Put behind each message of the user, likewise."""
    facts: bool = False
    """Show what kind of system the workspace is, its shell, and the branch if it is a git repository."""
    date: bool = False
    """Show the day, and a new one when a message comes on it."""
    examples: bool = False
    """Show an example of a call for each tool, for small models."""

    def __post_init__(self) -> None:
        if both := sorted(set(self.replace) & set(self.drop)):
            raise ValueError(f"`replace` and `drop` both name the section {both[0]!r}: pass one of the two.")
        names = [source.name for source in self.sources]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"Two sources are called {doubled[0]!r}: pass one of them.")
        _ = self.sections

    @property
    def named_sections(self) -> str | None:
        """The argument by which the sections of the prompt are other than the default ones; None if they are not."""
        if self.variant is not None:
            return "variant"
        return next((name for name in ("replace", "add", "drop") if getattr(self, name)), None)

    @cached_property
    def sections(self) -> Mapping[str, str]:
        """The sections of the prompt by name, in their order."""
        sections = dict(self._base)
        for name, text in self.replace.items():
            if name not in sections:
                _refuse("replace", name, sections)
            sections[name] = text
        for name in self.drop:
            if name not in sections:
                _refuse("drop", name, sections)
            del sections[name]
        for name, text in self.add.items():
            if name in self._base:
                raise ValueError(
                    f"There is a section {name!r} already: pass its new text as replace={{{name!r}: ...}}."
                )
            sections[name] = text
        return sections

    @cached_property
    def prompt(self) -> str:
        """The text of the sections."""
        return join_sections(self.sections)

    @cached_property
    def all_sources(self) -> tuple[ContextSource, ...]:
        """The sources, and those that `facts` and `date` stand for, in the order in which they are shown."""
        facts = (WorkspaceFacts(),) if self.facts else ()
        return (*self.sources, *facts, *((Today(),) if self.date else ()))

    @cached_property
    def _base(self) -> Mapping[str, str]:
        variant = self.variant
        if isinstance(variant, Mapping):
            return dict(variant)
        name = "default" if variant is None else os.fspath(variant)
        if name in VARIANTS:
            return VARIANTS[name]
        if not (os.path.dirname(name) or name.endswith(".md")):
            _refuse("variant", name, VARIANTS, what="variant", other=", or the path of a Markdown file")
        try:
            return read_variant(name)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                error.errno,
                f"There is no such Markdown file, which `variant` was taken for (the variants are {', '.join(VARIANTS)})",
                name,
            ) from None


def _refuse(argument: str, name: str, known: Iterable[str], *, what: str = "section", other: str = "") -> NoReturn:
    # Here because importing it takes longer than the rest of this module, and only mistakes need it.
    from difflib import get_close_matches  # noqa: PLC0415

    close = get_close_matches(name, list(known), n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(map(repr, known))}{other}."
    raise ValueError(f"`{argument}` names a {what} {name!r} that there is not: {meant}")


def record_context(context: AgentContext) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Return the record of a context, and the names of the parts that cannot be recorded."""
    changed = bool(context.replace or context.add or context.drop)
    recorded: dict[str, JsonValue] = {}
    if isinstance(context.variant, str) and context.variant in VARIANTS and not changed:
        recorded["variant"] = context.variant
    elif context.variant is not None or changed:
        # The texts and not the path: the file may be another one by then, or on another machine.
        recorded["sections"] = [[name, text] for name, text in context.sections.items()]
    specs = [(source, source.record()) for source in context.sources]
    if specs:
        recorded["sources"] = [spec.model_dump(mode="json") for _, spec in specs if spec is not None]
    for name in ("message_prefix", "message_suffix", "facts", "date", "examples"):
        if value := getattr(context, name):
            recorded[name] = value
    return recorded, tuple(f"the context source {source.name!r}" for source, spec in specs if spec is None)


def restore_context(recorded: Mapping[str, Any]) -> AgentContext:
    """Make a context again of what `record_context` gave. It may import modules: call it in a worker thread.

    Raises:
        ToolNotFound: a source is not registered here.
        ValueError: it does not describe a context.
    """
    rest = {name: value for name, value in recorded.items() if name not in ("sections", "sources")}
    variant = recorded.get("variant")
    if variant is not None and variant not in VARIANTS:
        raise ValueError(f"The recorded context names a variant {variant!r}, which is not here. Pass the agent.")
    if "sections" in recorded:
        rest["variant"] = dict(recorded["sections"])
    sources = tuple(resolve_context_source(SourceSpec.model_validate(spec)) for spec in recorded.get("sources", ()))
    return AgentContext(**rest, sources=sources)
