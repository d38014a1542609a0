"""The parts of a client's agent that a server makes of a record: only what stays in its workspace, and in its conversation.

A record names tools, toolsets, sources of context and condensers, which programs and installed packages can register for logs of
their own. Not for clients: a toolset may start a process, a source may read the files of the user who runs the server. So
a name has to be one of those below, or one that the server's settings list.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple, cast

from agentcore.tools import tool_names
from agentcore_serve.refused import Refused
from agentcore_tools import FACTORIES

_TOOLS: Final = frozenset({*FACTORIES, "finish", "think", "ask_user", "recall"})
_FUNCTION: Final = "function"
_WRAPPERS: Final = frozenset({"prefixed", "filtered", "renamed"})
_CONDENSERS: Final = frozenset({"amortised", "masking", "pipeline", "structured", "summary", "window"})
_SOURCES: Final[Mapping[str, frozenset[str]]] = {
    "project_files": frozenset(),
    "memory": frozenset({"user"}),
    "skills": frozenset({"user", "packages"}),
}
"""Sources of context, and their parameters that read files outside of the workspace, on unless they are turned off."""


class AllowedParts(NamedTuple):
    """The parts that an agent of a client's may have besides those that come with agentcore."""

    modules: Collection[str] = ()
    """Modules whose functions with `@tool` it may have."""
    names: Collection[str] = ()
    """Tools, toolsets, sources of context and condensers that are registered under these names."""

    def tool_names(self) -> tuple[str, ...]:
        """Return the tools by name that clients may have. It reads what is installed."""
        return tuple(name for name in tool_names() if name in _TOOLS or name in self.names)


DEFAULT_PARTS: Final = AllowedParts()
"""Those that come with agentcore."""


def check_parts(record: Mapping[str, Any], allowed: AllowedParts) -> None:
    """Refuse a record with a part that is not for clients, before anything is imported or made.

    Raises:
        Refused: There is one, or it is not a record (422).
    """
    for tool in _list(record.get("tools", [])):
        _check_tool(tool, allowed)
    for toolset in _list(record.get("toolsets", [])):
        _check_toolset(toolset, allowed)
    if (context := record.get("context")) is not None:
        for source in _list(_mapping(context).get("sources", [])):
            _check_source(source, allowed)
    if (condenser := record.get("condenser")) is not None:
        _check_condenser(condenser, allowed)


def _check_tool(spec: Any, allowed: AllowedParts) -> None:
    name, params = _read(spec)
    if name == _FUNCTION:
        module = str(params.get("import")).partition(":")[0]
        # One that is imported is not one that is allowed: the server's own program has tools, too.
        if not any(module == each or module.startswith(f"{each}.") for each in allowed.modules):
            raise _refusal("A function of the agent's is in a module that is not allowed here (allowed_modules).")
    elif name not in _TOOLS:
        _check_name("tool", name, allowed)
    elif params.get("extra_roots"):
        raise _refusal("A tool of the agent's has `extra_roots`: the tools of clients' agents stay in the workspace.")


def _check_toolset(spec: Any, allowed: AllowedParts) -> None:
    name, params = _read(spec)
    if name in _WRAPPERS:
        _check_toolset(params.get("toolset"), allowed)
    else:
        _check_name("toolset", name, allowed)


def _check_source(spec: Any, allowed: AllowedParts) -> None:
    name, params = _read(spec)
    if name in allowed.names:
        return
    if name not in _SOURCES:
        _check_name("context source", name, allowed)
    for outside in sorted(_SOURCES[name]):
        if params.get(outside) is not False:
            raise _refusal(
                f"The context source {name!r} would read files outside of the workspace: pass {outside}=False, or whoever "
                "runs this server allows it (allowed_parts)."
            )


def _check_condenser(spec: Any, allowed: AllowedParts) -> None:
    name, params = _read(spec)
    if name not in _CONDENSERS:
        _check_name("condenser", name, allowed)
    if name == "pipeline":
        for each in _list(params.get("condensers")):
            _check_condenser(each, allowed)
    if params.get("llm") is not None:
        raise _refusal("A condenser with a model of its own is not possible here: leave its `llm` out.")


def _check_name(kind: str, name: str, allowed: AllowedParts) -> None:
    if name not in allowed.names:
        raise _refusal(
            f"The agent has a {kind} that is not for agents of clients. Whoever runs this server can allow it (allowed_parts)."
        )


def _read(spec: Any) -> tuple[str, Mapping[str, Any]]:
    parts = _mapping(spec)
    name = parts.get("name")
    if not isinstance(name, str):
        raise _not_a_record()
    return name, _mapping(parts.get("params", {}))


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _not_a_record()
    return cast("Mapping[str, Any]", value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _not_a_record()
    return cast("list[Any]", value)


def _not_a_record() -> Refused:
    return _refusal("The agent's record is not what `record_agent` writes.")


def _refusal(detail: str) -> Refused:
    return Refused(422, "agent_refused", detail)
