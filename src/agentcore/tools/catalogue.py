"""A catalogue of tools that can be searched: by name, by words of their descriptions, and by toolset."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, final

from agentcore._ranking import MOST_TERMS, rank
from agentcore._text import Mask, clip, replace_lone_surrogates
from agentcore.errors import ToolError
from agentcore.tools.definition import AnyTool

_ROOM: Final = 20_000
"""Characters of an answer: so many tools are described in it, and the rest is named."""
_FEWER: Final = "[{count:,} more are not listed.]"
_INDEXED: Final = 2_000
"""Characters of a description that are searched."""
_LINE: Final = 200
_IGNORED: Final = re.compile(r"[-_\s]")
_NAME_WEIGHT: Final = 3
"""How often a name counts for each time that its words stand in a description."""


class FoundTools(NamedTuple):
    """The answer to a search."""

    text: str
    described: Mapping[str, str]
    """The digests of the tools whose descriptions are in the text, by their names."""


@final
class ToolCatalogue:
    """Tools by their toolsets, as they were at one time. The index is made by the first search."""

    def __init__(self, toolsets: Mapping[str, Sequence[AnyTool]] | None = None) -> None:
        """Take the tools by the names of their toolsets. No two have one name."""
        self._toolsets = {name: tuple(tools) for name, tools in (toolsets or {}).items()}
        self.tools: tuple[AnyTool, ...] = tuple(tool for tools in self._toolsets.values() for tool in tools)
        self._by_name = {tool.name: tool for tool in self.tools}

    def is_of(self, toolsets: Mapping[str, Sequence[AnyTool]]) -> bool:
        """Return True if it is a catalogue of these very tools."""
        return self._toolsets == {name: tuple(tools) for name, tools in toolsets.items()}

    def get(self, name: str) -> AnyTool | None:
        """Return the tool of exactly this name."""
        return self._by_name.get(name)

    def search(self, query: str, *, limit: int, toolset: str | None, mask: Mask) -> FoundTools:
        """Return the tools that fit a query, the best first; without one, what there is. Takes a while where there are many.

        Args:
            query: Words, or names of tools.
            limit: How many tools are described at the most.
            toolset: The name of the toolset to search; None is all of them.
            mask: Replaces secrets, before anything is cut.

        Raises:
            ToolError: There is no such toolset.
        """
        if toolset is not None and toolset not in self._toolsets:
            names = ", ".join(map(repr, self._toolsets)) or "none"
            raise ToolError(clip(f"There is no toolset {toolset!r}. There are: {names}.", _ROOM, mask=mask))
        if not query.strip():
            text = self._overview(mask) if toolset is None else self._listing(toolset, mask)
            return FoundTools(replace_lone_surrogates(text), {})
        found = self._find(query, toolset)
        searched = len(self.tools if toolset is None else self._toolsets[toolset])
        if not found:
            return FoundTools(
                f"None of {searched:,} tools matches. Try other words, or an empty query to see what there is.", {}
            )
        return _described(found, limit, searched, mask)

    @cached_property
    def _index(self) -> Sequence[str]:
        return [_indexed(tool) for tool in self.tools]

    def _find(self, query: str, toolset: str | None) -> list[AnyTool]:
        """Return the tools that the query names, then those that its words are in; where all words are names, only the former."""
        members = frozenset(self.tools if toolset is None else self._toolsets[toolset])
        words = {_folded(word) for word in re.findall(r"[\w-]+", query)}
        named = [tool for tool in self.tools if tool in members and _folded(tool.name) in words]
        if words <= {_folded(tool.name) for tool in named}:
            return named
        terms = list(dict.fromkeys(map(_stem, re.findall(r"[^\W_]+", query.lower()))))[:MOST_TERMS]
        ranked = sorted(rank(terms, self._index), key=lambda each: (-each[0], each[1]))
        others = (self.tools[index] for _, index in ranked)
        return [*named, *(tool for tool in others if tool in members and tool not in named)]

    def _overview(self, mask: Mask) -> str:
        room = _ROOM // (len(self._toolsets) + 1)
        lines = [f"{len(self.tools):,} tools. Pass query to search them, or toolset to list those of one."]
        for name, tools in self._toolsets.items():
            names = _join_fitting([mask(tool.name) for tool in tools], room, ", ")
            lines.append(f"- {mask(name)} ({len(tools):,}): {names}")
        return clip("\n".join(lines), _ROOM, mask=mask)

    def _listing(self, toolset: str, mask: Mask) -> str:
        tools = self._toolsets[toolset]
        lines = [f"- {mask(tool.name)}: {' '.join(mask(tool.description).split())[:_LINE]}" for tool in tools]
        head = f"{len(tools):,} tools of {mask(toolset)!r}. Search for the name of one to see its parameters."
        return f"{head}\n{_join_fitting(lines, _ROOM, chr(10))}"


def describe_tool(tool: AnyTool) -> str:
    """Return name, description and parameters of a tool as one line of JSON."""
    schema = tool.schema
    return json.dumps(
        {"name": schema.name, "description": schema.description, "parameters": schema.parameters}, ensure_ascii=False
    )


def _described(found: Sequence[AnyTool], limit: int, searched: int, mask: Mask) -> FoundTools:
    lines: list[str] = []
    described: dict[str, str] = {}
    room = _ROOM
    for tool in found[:limit]:
        line = replace_lone_surrogates(mask(describe_tool(tool)))
        if lines and len(line) > room:
            continue
        # The best one is described in any case: nothing else would show how to call it.
        line = clip(line, _ROOM, mask=mask)
        room -= len(line)
        lines.append(line)
        described[tool.name] = tool.schema.digest
    more = [mask(tool.name) for tool in found if tool.name not in described]
    text = f"{len(found):,} of {searched:,} tools match, the best first:\n\n" + "\n\n".join(lines)
    if more:
        text += (
            f"\n\nThese match too; search for the name of one to see its parameters: {_join_fitting(more, 2_000, ', ')}"
        )
    return FoundTools(text, described)


def _join_fitting(pieces: Sequence[str], room: int, separator: str) -> str:
    """Join as many as there is room for, and say how many are left out."""
    kept: list[str] = []
    for piece in pieces:
        room -= len(piece) + len(separator)
        if room < 0:
            break
        kept.append(piece)
    left = len(pieces) - len(kept)
    return separator.join([*kept, *([_FEWER.format(count=left)] if left else [])])


def _indexed(tool: AnyTool) -> str:
    schema = tool.schema
    names = [tool.name] * _NAME_WEIGHT
    properties = schema.parameters.get("properties")
    parameters = list(properties) if isinstance(properties, dict) else []
    return "\n".join([*names, tool.description[:_INDEXED], *parameters]).lower()


def _stem(word: str) -> str:
    """Return a word without the s of a plural, which is found in the plural too."""
    return word[:-1] if len(word) > len("gas") and word.endswith("s") else word


def _folded(name: str) -> str:
    return _IGNORED.sub("", name).casefold()
