"""Events that the model does not see, as text: state, control, usage."""

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
    CheckpointsSet,
    Condensation,
    CondensationRequest,
    ContextNotice,
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
    QuestionAnswered,
    QuestionAsked,
    RetryEvent,
    RunJoined,
    SecretsRegistered,
    StatusChanged,
    TagsSet,
    TitleSet,
    ToolsetNotice,
    UsageEvent,
    WorkspaceCheckpointed,
    WorkspaceOpened,
    WorkspaceRestored,
)

_GIVEN = re.compile(r"\s+Given: ")


def render_state_event(event: Event) -> Text:
    """Render a bookkeeping event as one line; an empty one for an unknown kind."""
    match event:
        case AgentConfigured():
            line = Text(one_line(_agent(event)))
        case WorkspaceOpened():
            line = _workspace(event)
        case UsageEvent():
            line = Text(_usage(event), DIM)
        case QuestionAsked() | QuestionAnswered():
            line = _question(event)
        case CondensationRequest() | Condensation():
            line = Text(one_line(_shortened(event)))
        case RetryEvent():
            then = f"retrying in {duration(event.delay)}"
            if event.next_model is not None:
                then = f"trying {event.next_model}"
            why = f"attempt {event.attempt} failed, {then}: {event.error}"
            line = Text(printable(why), WARN)
        case PauseEvent():
            line = Text("pause requested after this step", WARN)
        case InterruptEvent():
            why = f"interrupted: {event.reason or 'no reason given'}"
            if event.partial_text:
                why += f"; partial reply: {event.partial_text}"
            line = Text(one_line(why), WARN)
        case ConversationErrorEvent():
            line = Text(printable(f"{event.code}: {event.detail}"), BAD)
        case HeadMoved() | WorkspaceCheckpointed() | WorkspaceRestored():
            line = _files(event)
        case HookEvent():
            line = Text(one_line(f"{event.hook}: {event.outcome} {event.output or ''}"))
        case ConversationStateUpdateEvent():
            line = _render_fact(event.update)
        case _:
            line = Text("")
    return line


def _files(event: HeadMoved | WorkspaceCheckpointed | WorkspaceRestored) -> Text:
    if isinstance(event, HeadMoved):
        files = "" if event.checkpoint is None else ", with its files"
        return Text(f"rewound to event {event.to}{files}; later events are on another branch", WARN)
    if isinstance(event, WorkspaceCheckpointed):
        left_out = f"; left out: {', '.join(event.left_out)}" if event.left_out else ""
        return Text(one_line(f"{count(event.files, 'file')} saved{left_out}"), WARN if left_out else "")
    if event.error is not None:
        return Text(one_line(f"not brought back: {event.error}"), BAD)
    return Text(f"{event.written} written, {event.removed} removed")


def _workspace(event: WorkspaceOpened) -> Text:
    where = next((event.spec[name] for name in ("root", "mount", "path") if event.spec.get(name)), "")
    line = Text(one_line(f"{event.workspace} {where}".rstrip()))
    return line.append(one_line(f"; {' '.join(event.loosened)}"), WARN) if event.loosened else line


def error_lines(event: AgentErrorEvent, *, whole: bool) -> list[str]:
    """Return the lines of an error.

    For a malformed call the model also reads its arguments and the schema. People see the call above, so these are omitted.
    """
    error = event.error
    if event.code in ("bad_arguments", "unknown_tool") and not whole:
        error = _GIVEN.split(error, maxsplit=1)[0] or error
    return printable(error).strip("\n").split("\n") if error else []


def _agent(event: AgentConfigured) -> str:
    model, missing = model_of(event), list(event.missing)
    if model is None and "llm" not in event.agent and missing:
        # The model is the first of the missing parts.
        model = f"{missing.pop(0)}, which was not recorded"
    line = f"{model or 'a model that was not recorded'}, with {', '.join(tools_of(event)) or 'no tools'}"
    return f"{line} (not recorded: {', '.join(missing)})" if missing else line


def _question(event: QuestionAsked | QuestionAnswered) -> Text:
    if isinstance(event, QuestionAsked):
        return Text(one_line(event.text), WARN)
    detail = event.reason if event.answer is None else json.dumps(event.answer, ensure_ascii=False)
    return Text(one_line(f"{event.outcome}: {detail}" if detail else event.outcome))


def _shortened(event: Condensation | CondensationRequest) -> str:
    """Describe what a condensation freed: "shortened: 120,000 -> 48,000 tokens, 84 events, by summary"."""
    if isinstance(event, CondensationRequest):
        return "to be shortened before the next step"
    parts: list[str] = []
    if event.tokens_before is not None and event.tokens_after is not None:
        parts.append(f"{event.tokens_before:,} -> {event.tokens_after:,} tokens")
    if event.forgotten:
        parts.append(count(len(event.forgotten), "event"))
    if event.masked:
        parts.append(f"the content of {count(len(event.masked), 'answer')}")
    if event.condenser is not None:
        parts.append(f"by {event.condenser}")
    if event.reason == "repair":
        parts.append("because the provider refused it")
    return f"shortened: {', '.join(parts)}"


def _usage(event: UsageEvent) -> str:
    model = one_line(event.model)
    used = event.usage
    parts = [f"{model}: {spent(used)}" if used.total_tokens or used.unpriced_requests else f"{model}: {cost(used)}"]
    if event.purpose != "step":
        parts.append(one_line(event.purpose))
    if event.seconds is not None:
        parts.append(duration(event.seconds))
    return ", ".join(parts)


def _render_fact(fact: Fact) -> Text:
    match fact:
        case StatusChanged():
            style = {"finished": GOOD, "error": BAD, "stuck": BAD, "waiting_for_confirmation": WARN, "paused": WARN}
            why = ": ".join(part for part in (fact.code, fact.detail) if part)
            line = str(fact.status).replace("_", " ")
            rendered = Text(one_line(f"{line} ({why})" if why else line), style.get(fact.status, ""))
        case TitleSet():
            rendered = Text(one_line(f"title: {fact.title}"))
        case TagsSet():
            rendered = Text(
                one_line(f"tags: {', '.join(f'{name}={value}' for name, value in fact.tags.items()) or 'none'}")
            )
        case LimitsSet():
            held = fact.limits.model_dump(mode="json", exclude_none=True)
            rendered = Text(
                one_line(f"limits: {', '.join(f'{name} {value}' for name, value in held.items()) or 'none'}")
            )
        case PolicySet():
            rendered = Text(one_line(f"confirmation: {fact.policy.get('name', 'of the program')}"))
        case CheckpointsSet():
            rendered = Text("files are saved at each step" if fact.when == "settled" else "files are saved when asked")
        case SecretsRegistered():
            rendered = Text(one_line(f"{count(len(fact.names), 'secret')}: {', '.join(fact.names)}"))
        case ContextNotice():
            what = "condenser " if fact.code == "condenser_failed" else ""
            rendered = Text(one_line(f"{what}{fact.name}: {fact.detail}"), WARN)
        case ToolsetNotice():
            # A message is the toolset's own: whose words they are has to be seen.
            line = f"{fact.name}: {fact.detail}" if fact.code == "message" else fact.detail
            rendered = Text(one_line(line), "" if fact.code in {"open", "message"} else WARN)
        case RunJoined():
            rendered = Text("somebody else waits for the run too", DIM)
        case Forked():
            rendered = Text(one_line(f"forked from {fact.conversation_id} at event {fact.at}"))
        case _:
            rendered = Text(one_line(f"{fact.fact}: {json.dumps(fact.model_extra, default=str)}"))
    return rendered


def model_of(configured: AgentConfigured) -> str | None:
    """Return the name of the recorded model."""
    match configured.agent.get("llm"):
        case {"model": str() as model}:
            return model
        case _:
            return None


def tools_of(configured: AgentConfigured) -> list[str]:
    """Return the names of the recorded tools and toolsets."""
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
        case {"params": {"toolset": inner}}:  # a wrapper
            return _toolset_name(inner)
        case {"name": "mcp", "params": {"name": str() as name}}:
            return f"{name} (an MCP server)"
        case {"name": str() as name}:
            return f"{name} (a toolset)"
        case _:
            return "a toolset"
