"""How the events are said that a model is not shown: decisions, control, usage."""

from __future__ import annotations

import json
import re

from pydantic import JsonValue
from rich.text import Text

from agentcore.cli.console import BAD, DIM, GOOD, WARN
from agentcore.cli.text import cost, count, duration, one_line, printable, spent
from agentcore.events import (
    AgentConfigured,
    AgentErrorEvent,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    Event,
    Fact,
    Forked,
    HeadMoved,
    HookEvent,
    InterruptEvent,
    LimitsSet,
    PauseEvent,
    PolicySet,
    RetryEvent,
    SecretsRegistered,
    StatusChanged,
    TagsSet,
    TitleSet,
    ToolsetNotice,
    UsageEvent,
    WorkspaceOpened,
)

_GIVEN = re.compile(r"\s+Given: ")


def say_fact(event: Event) -> Text:
    """Say a bookkeeping event on one line; one of a kind that is not known here by its kind."""
    match event:
        case AgentConfigured():
            said = Text(one_line(_agent(event)))
        case WorkspaceOpened():
            where = event.spec.get("root", "")
            said = Text(one_line(f"{event.workspace} {where}"))
        case UsageEvent():
            said = Text(_usage(event), DIM)
        case RetryEvent():
            then = f"the next one in {duration(event.delay)}"
            if event.next_model is not None:
                then = f"{event.next_model} is asked"
            why = f"attempt {event.attempt} failed, {then}: {event.error}"
            said = Text(printable(why), WARN)
        case PauseEvent():
            said = Text("asked to stop at the end of the step", WARN)
        case InterruptEvent():
            why = f"stopped where it was: {event.reason or 'no reason given'}"
            if event.partial_text:
                why += f"; the reply had begun: {event.partial_text}"
            said = Text(one_line(why), WARN)
        case ConversationErrorEvent():
            said = Text(printable(f"{event.code}: {event.detail}"), BAD)
        case HeadMoved():
            said = Text(f"goes on from event {event.to}; what came after it is another branch", WARN)
        case HookEvent():
            said = Text(one_line(f"{event.hook}: {event.outcome} {event.output or ''}"))
        case ConversationStateUpdateEvent():
            said = _say_update(event.update)
        case _:
            said = Text("")
    return said


def error_lines(event: AgentErrorEvent, *, whole: bool) -> list[str]:
    """Return why a call came to nothing, line by line.

    Of a call that can't be made, a model is also told what it gave and what is wanted: a person sees the call above.
    """
    error = event.error
    if event.code in ("bad_arguments", "unknown_tool") and not whole:
        error = _GIVEN.split(error, maxsplit=1)[0] or error
    return printable(error).strip("\n").split("\n") if error else []


def _agent(event: AgentConfigured) -> str:
    model, missing = model_of(event), list(event.missing)
    if model is None and "llm" not in event.agent and missing:
        # The model is the first to be named among what is missing.
        model = f"{missing.pop(0)}, which is not recorded"
    line = f"{model or 'a model that is not recorded'}, with {', '.join(tools_of(event)) or 'no tools'}"
    return f"{line} (not recorded: {', '.join(missing)})" if missing else line


def _usage(event: UsageEvent) -> str:
    model = one_line(event.model)
    used = event.usage
    parts = [f"{model}: {spent(used)}" if used.total_tokens or used.unpriced_requests else f"{model}: {cost(used)}"]
    if event.purpose != "step":
        parts.append(one_line(event.purpose))
    if event.seconds is not None:
        parts.append(duration(event.seconds))
    return ", ".join(parts)


def _say_update(fact: Fact) -> Text:
    match fact:
        case StatusChanged():
            style = {"finished": GOOD, "error": BAD, "stuck": BAD, "waiting_for_confirmation": WARN, "paused": WARN}
            why = ": ".join(part for part in (fact.code, fact.detail) if part)
            said = str(fact.status).replace("_", " ")
            told = Text(one_line(f"{said} ({why})" if why else said), style.get(fact.status, ""))
        case TitleSet():
            told = Text(one_line(f"title: {fact.title}"))
        case TagsSet():
            told = Text(
                one_line(f"tags: {', '.join(f'{name}={value}' for name, value in fact.tags.items()) or 'none'}")
            )
        case LimitsSet():
            held = fact.limits.model_dump(mode="json", exclude_none=True)
            told = Text(one_line(f"limits: {', '.join(f'{name} {value}' for name, value in held.items()) or 'none'}"))
        case PolicySet():
            told = Text(one_line(f"confirmation: {fact.policy.get('name', 'of the program')}"))
        case SecretsRegistered():
            told = Text(one_line(f"{count(len(fact.names), 'secret')}: {', '.join(fact.names)}"))
        case ToolsetNotice():
            told = Text(one_line(fact.detail), "" if fact.code in {"open", "said"} else WARN)
        case Forked():
            told = Text(one_line(f"a copy of {fact.conversation_id} up to its event {fact.at}"))
        case _:
            told = Text(one_line(f"{fact.fact}: {json.dumps(fact.model_extra, default=str)}"))
    return told


def model_of(configured: AgentConfigured) -> str | None:
    """Give the name of the model that was recorded."""
    match configured.agent.get("llm"):
        case {"model": str() as model}:
            return model
        case _:
            return None


def tools_of(configured: AgentConfigured) -> list[str]:
    """Give the names under which the agent's tools and toolsets were recorded."""
    names: list[str] = []
    match configured.agent.get("tools"):
        case list() as tools:
            for tool in tools:
                match tool:
                    case {"name": "function", "params": {"import": str() as path}}:
                        names.append(path.rpartition(":")[2])
                    case {"name": str() as name}:
                        names.append(name)
                    case _:
                        pass
        case _:
            pass
    match configured.agent.get("toolsets"):
        case list() as toolsets:
            names += [_toolset_name(toolset) for toolset in toolsets]
        case _:
            pass
    return names


def _toolset_name(recorded: JsonValue) -> str:
    match recorded:
        case {"params": {"toolset": inner}}:  # what wraps another one
            return _toolset_name(inner)
        case {"name": str() as name}:
            return f"{name} (a toolset)"
        case _:
            return "a toolset"
