"""A call as a model wrote it, read as it was meant.

Models miswrite names and arguments in ways of their own. What is beyond doubt is repaired here; what belongs to one tool
(its other names, what a missing field must have been) that tool declares. The rest becomes an answer from which the model
can tell what to write instead: a call that can't be read is an answer, never a crash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeVar

from pydantic import JsonValue

from agentcore._text import Mask, already_masked, replace_lone_surrogates
from agentcore.errors import ToolArgumentsError, ToolError
from agentcore.tools.arguments import coerce, describe_parameters, drop_ignored, preview, rename_keys
from agentcore.tools.definition import Action, AnyTool, Arguments
from agentcore.tools.json_text import TooDeepError, is_same_json, read_object, refuse_too_deep

_WORD: Final = re.compile(r"[\w-]+")
_MOST_NAMES: Final = 100
_CLOSEST_NAMES: Final = 20
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]+")

NormalizedT = TypeVar("NormalizedT")


class ReadCall(NamedTuple):
    """The outcome of reading a call: an action of a tool, or a problem to answer with."""

    name: str
    """The tool's name; of an unknown tool what was asked for, in characters that providers take back."""
    arguments: dict[str, JsonValue]
    """The arguments as they were understood."""
    given: dict[str, JsonValue] | None = None
    """The arguments as they were written, where they were understood as others; else None."""
    tool: AnyTool | None = None
    action: Action | None = None
    """The action to execute; None where there is a problem."""
    problem: str | None = None
    """The answer for the model."""
    code: Literal["unknown_tool", "bad_arguments", "tool_changed"] | None = None
    """The problem, for programs."""
    malformed: str | None = None
    """The text that came instead of arguments, where it could not be read."""
    ignored: tuple[str, ...] = ()
    """The names of arguments that were dropped, because they change nothing."""
    digest: str | None = None
    """The digest of the tool's schema, of a deferred tool."""


def read_call(
    name: str,
    arguments: Mapping[str, JsonValue] | str,
    tools: Sequence[AnyTool],
    *,
    mask: Mask = already_masked,
) -> ReadCall:
    """Read a call of one of the tools. It never raises on what a model wrote.

    Args:
        name: The name that the model called.
        arguments: The arguments, as an object or as the text of one.
        tools: The tools that it may mean.
        mask: Replaces secrets in the problem, where the arguments may hold the values of some.
    """
    try:
        given = read_object(arguments) if isinstance(arguments, str) else _cleaned(dict(arguments))
    except ValueError as error:
        tool = next((tool for tool, _ in _meant(name, tools)), None)
        came = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return _unreadable(name, tool, came, error, tools, mask=mask)
    read = _read(name, given, tools, mask)
    return read if is_same_json(given, read.arguments) else read._replace(given=given)


def _read(name: str, given: dict[str, JsonValue], tools: Sequence[AnyTool], mask: Mask) -> ReadCall:
    for tool, normalize in _meant(name, tools):
        try:
            repaired = given if normalize is None else _normalized(normalize, given)
            if repaired is not None:
                return _read_arguments(tool, repaired, mask)
        except ToolError as error:
            return ReadCall(name=tool.name, tool=tool, arguments=given, problem=mask(str(error)), code="bad_arguments")
    return _unknown(name, given, tools, mask)


def _cleaned(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    refuse_too_deep(arguments)
    return replace_lone_surrogates(arguments)


def _read_arguments(tool: AnyTool, given: dict[str, JsonValue], mask: Mask) -> ReadCall:
    parameters = tool.schema.parameters
    repaired = rename_keys(given, parameters)
    if tool.normalize is not None:
        repaired = _normalized(tool.normalize, repaired)
    repaired, ignored = drop_ignored(repaired, tool.ignored, parameters)
    coerced = coerce(repaired, parameters)
    assert isinstance(coerced, dict), "arguments are an object and stay one"
    try:
        action = tool.parse(coerced, mask=mask)
        return ReadCall(name=tool.name, tool=tool, action=action, arguments=coerced, ignored=ignored)
    except ToolArgumentsError as error:
        return ReadCall(name=tool.name, tool=tool, arguments=coerced, problem=str(error), code="bad_arguments")


def _normalized(normalize: Callable[[Arguments], NormalizedT], given: Arguments) -> NormalizedT | Arguments:
    try:
        return normalize(dict(given))
    except ToolError:
        raise  # it says what to do instead
    except Exception:
        # The tool's own code, on arguments that nobody has checked yet. The check comes next, and says what is wrong.
        return given


def _meant(
    name: str, tools: Sequence[AnyTool]
) -> Iterator[tuple[AnyTool, Callable[[Arguments], Arguments | None] | None]]:
    """Return the tools that the name can be meant for, the likeliest first: as it is, its words, other names, other case."""
    words = list(dict.fromkeys([name, *_WORD.findall(name)[:2]]))
    for same in (_same, _folded):
        for word in words:
            yield from ((tool, None) for tool in tools if same(tool.name) == same(word))
        for word in words:
            for tool in tools:
                for alias in tool.aliases:
                    if isinstance(alias, str) and same(alias) == same(word):
                        yield tool, None
                    elif not isinstance(alias, str) and same(alias[0]) == same(word):
                        yield tool, alias[1]


def _same(name: str) -> str:
    return name


def _folded(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).casefold()


def _unknown(name: str, given: dict[str, JsonValue], tools: Sequence[AnyTool], mask: Mask) -> ReadCall:
    name = mask(name)
    problem = (
        f"There is no tool {name!r}. {_there(name, [tool.name for tool in tools])} Given: {preview(given, mask=mask)}"
    )
    return ReadCall(name=_safe(name), arguments=given, problem=problem, code="unknown_tool")


def _there(name: str, names: Sequence[str]) -> str:
    if len(names) <= _MOST_NAMES:
        return f"The tools there are: {', '.join(names) or 'none'}."
    import difflib  # noqa: PLC0415 # off the start-up path: few calls name a tool that is not there

    closest = difflib.get_close_matches(name[:64], names, n=_CLOSEST_NAMES) or names[:_CLOSEST_NAMES]
    return f"Of the {len(names)} tools there are these come closest: {', '.join(closest)}."


def _unreadable(
    name: str, tool: AnyTool | None, text: str, error: ValueError, tools: Sequence[AnyTool], *, mask: Mask
) -> ReadCall:
    if tool is None:
        unknown = _unknown(name, {}, tools, mask)
        return ReadCall(name=unknown.name, arguments={}, problem=unknown.problem, code=unknown.code, malformed=text)
    why = "" if isinstance(error, TooDeepError) else " They may have been cut off."
    problem = (
        f"The arguments of {tool.name!r} can't be read: {error}.{why} Nothing was done. "
        f"Give one JSON object.\nGiven: {preview(text, mask=mask)}\nWanted: {describe_parameters(tool.schema.parameters)}"
    )
    return ReadCall(name=tool.name, arguments={}, tool=tool, problem=problem, code="bad_arguments", malformed=text)


def _safe(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name).strip("_")[:64] or "unknown"
