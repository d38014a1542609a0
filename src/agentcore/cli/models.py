"""The agent of the command line: the requested model with the coding tools."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Final, Literal, cast

from pydantic import ValidationError

from agentcore.agent import Agent, restore_agent
from agentcore.cli.failures import UsageError, with_flags
from agentcore.cli.mcp_files import NO_SERVERS, Servers, recorded_names, renew_recorded
from agentcore.cli.settings import Settings
from agentcore.cli.sources import add_servers, build_context, leave_out_sources, register_sources
from agentcore.condense import Condenser, Masking, Summary, Window
from agentcore.context import user_memory_path
from agentcore.errors import AddressNotAllowed, MissingExtra
from agentcore.llm import LLM, Model, allow_base_url, record_model, restore_model
from agentcore.llm.catalog import model_info
from agentcore.llm.llm import goes_native
from agentcore.llm.providers import KEY_VARIABLES, PROVIDERS
from agentcore.record import ConversationState
from agentcore.tools import ask_user, register_tool
from agentcore.usage import Limits
from agentcore_tools import FACTORIES, coding_tools, planning_tools, readonly_tools

Tools = Literal["coding", "readonly", "planning"]
CondenserName = Literal["summary", "masking", "window", "none"]

_CONDENSERS: Final[Mapping[CondenserName, Condenser | None]] = {
    "summary": Summary(),
    "masking": Masking(),
    "window": Window(facts=True),
    "none": None,
}

_KEY_ALONE = "_API_KEY"
"""A provider whose variables all end like this can only be reached with a key."""

_REPORTS_COST = "openrouter"
"""The provider that reports the cost of each reply."""


def build_agent(
    settings: Settings,
    *,
    retries: int | None = None,
    tools: Tools = "coding",
    system_prompt: str | None = None,
    without: Collection[str] = (),
    condenser: str = "summary",
) -> Agent:
    """Build the agent for a new conversation, without the named sources of context.

    Raises:
        UsageError: No model was named, or it cannot be reached with these settings.
        MissingExtra: The model needs litellm, which is not installed.
    """
    llm = _model(settings, retries)
    chosen = {"readonly": readonly_tools, "planning": planning_tools}.get(tools)
    # The one file outside of the folder that the file tools may write.
    memory = () if "memory" in without else (user_memory_path(),)
    return Agent(
        llm=llm,
        tools=(*(coding_tools(llm.model, extra_roots=memory) if chosen is None else chosen()), ask_user),
        system_prompt=system_prompt,
        context=build_context(without),
        condenser=_CONDENSERS[cast("CondenserName", condenser)],
    )


def rebuild_agent(
    state: ConversationState,
    settings: Settings,
    *,
    model: str | None,
    base_url: str | None,
    retries: int | None,
    without: Collection[str] = (),
    servers: Servers = NO_SERVERS,
) -> Agent:
    """Rebuild the agent of a conversation, with another model or address if requested.

    Args:
        state: The state of the conversation.
        settings: The key, and the model and address that flags or the environment name.
        model: The value of --model: only a flag replaces several models.
        base_url: The value of --base-url.
        retries: The value of --retries.
        without: The sources of context that it does not have from now on; "mcp" for its MCP servers.
        servers: The MCP servers that there are now. It has those that it had, and those that --mcp brought.

    Raises:
        UsageError: The model was not recorded and none was named, or only the log names its address.
        AgentcoreError: One of its tools is not installed.
    """
    if state.agent is None:
        return add_servers(build_agent(settings, retries=retries, without=without), servers.toolsets())
    # An installed distribution declares its tools; a source checkout does not.
    for name, factory in FACTORIES.items():
        register_tool(name, factory)
    register_sources()
    recorded = renew_recorded(state.agent.agent, servers, leave_out="mcp" in without)
    added = servers.toolsets(set(servers.named) - recorded_names(recorded))
    # The model is the first of the missing parts. A flag can replace it, but not the parts of another program.
    if programs_own := state.agent.missing["llm" not in recorded :]:
        raise UsageError(
            f"Conversation {state.conversation_id!r} used {', '.join(programs_own)}, which could not be recorded. "
            "Resume it in the program that started it."
        )
    if settings.base_url is not None:
        allow_base_url(settings.base_url)
    several = _is_of_several(recorded.get("llm"))
    if several and model is None:
        if base_url is not None:
            raise UsageError(
                f"Conversation {state.conversation_id!r} uses several models, each with its own address. "
                "Name one of them too: --model provider/model"
            )
        several_llms = _restored(cast("Mapping[str, Any]", recorded["llm"]))
        return add_servers(leave_out_sources(restore_agent(recorded, llm=several_llms), without), added)
    if "llm" not in recorded:
        if settings.model is None:
            raise UsageError(
                f"The model of conversation {state.conversation_id!r} was not recorded (it may have been a scripted one). "
                "Name a model: --model provider/model"
            )
        llm = _model(settings, retries)
    elif several:
        llm = _model(settings, retries)
    else:
        before = LLM.model_validate(recorded["llm"])
        named = None if settings.model is None else _named(settings, server=before.base_url)
        llm = before if named is None or named.model == before.model else named
        at = settings.base_url or llm.base_url
        # Without a flag or a variable, only the log names the address.
        llm = cast("LLM", _restored({**llm.record(), "base_url": at}))
        llm = _checked(llm, settings, retries=retries)
    return add_servers(leave_out_sources(restore_agent(recorded, llm=llm), without), added)


def _restored(recorded: Mapping[str, Any]) -> Model:
    try:
        return restore_model(recorded)
    except ValidationError as error:
        raise UsageError(_first_problem(error)) from None
    except AddressNotAllowed as error:
        raise UsageError(
            f"Only the log names the address {error.address} of {error.model}, so nothing is sent there. "
            f"If the address is right, pass --base-url {error.address}"
        ) from None


def _is_of_several(recorded: object) -> bool:
    """Return whether a recorded model consists of several."""
    return isinstance(recorded, dict) and "kind" in recorded


def _each_llm(recorded: Any) -> Iterator[LLM]:
    """Return each `LLM` of a recorded model."""
    if isinstance(recorded, Mapping):
        parts = cast("Mapping[str, Any]", recorded)
        if "kind" not in parts and "model" in parts:
            yield LLM.model_validate(parts)
        else:
            for part in parts.values():
                yield from _each_llm(part)
    elif isinstance(recorded, list):
        for part in cast("list[Any]", recorded):
            yield from _each_llm(part)


def _model(settings: Settings, retries: int | None) -> LLM:
    if settings.model is None:
        raise UsageError(
            "No model was named. Use --model or AGENTCORE_MODEL, as in --model anthropic/claude-sonnet-4-5."
        )
    return _checked(_named(settings), settings, retries=retries)


def _named(settings: Settings, *, server: str | None = None) -> LLM:
    """Return the model that flags or the environment name; one without a provider is looked for at `server`."""
    assert settings.model is not None
    try:
        return LLM(model=settings.model, base_url=settings.base_url)
    except ValidationError as error:
        if settings.base_url is None and server is not None:
            return LLM(model=settings.model, base_url=server)
        raise UsageError(_first_problem(error)) from None


def _checked(llm: LLM, settings: Settings, *, retries: int | None) -> LLM:
    """Add the key and the retries to a model, and refuse what could only fail later."""
    # An empty key means that none may be sent to this address.
    key = settings.api_key if llm.api_key is None else None
    changes: dict[str, object] = {"api_key": key, "num_retries": retries}
    try:
        llm = llm.model_copy(update={name: value for name, value in changes.items() if value is not None})
    except ValidationError as error:
        raise UsageError(_first_problem(error)) from None
    through_litellm = not goes_native(llm)
    missing = through_litellm and find_spec("litellm") is None
    if missing and llm.provider not in PROVIDERS:
        raise _no_such_provider(llm)  # litellm would not know it either
    variables = KEY_VARIABLES.get(llm.provider, ())
    alone = bool(variables) and all(name.endswith(_KEY_ALONE) for name in variables)
    if alone and llm.api_key is None and llm.base_url is None and settings.keys.isdisjoint(variables):
        besides = f" {_without_litellm(llm)}" if missing else ""
        raise UsageError(
            f"No API key for {llm.provider}. Set the environment variable {' or '.join(variables)} "
            f"(or AGENTCORE_API_KEY).{besides}"
        )
    if missing:
        raise _without_litellm(llm)
    return llm


def _without_litellm(llm: LLM) -> MissingExtra:
    return MissingExtra(f"The model {llm.model!r}", "litellm")


def _no_such_provider(llm: LLM) -> UsageError:
    close = get_close_matches(llm.provider, PROVIDERS, n=3)
    meant = f"did you mean {' or '.join(repr(name) for name in close)}?" if close else "check the spelling."
    return UsageError(
        f"Unknown provider {llm.provider!r} in {llm.model!r}: {meant} "
        "For your own server, pass its address with --base-url."
    )


async def check_model(model: Model, limits: Limits) -> None:
    """Check the provider, and the price if there is a limit on the cost.

    Raises:
        UsageError: The provider is unknown, or the cost is limited and the price is unknown.
    """
    for llm in _each_llm(record_model(model)):
        if llm.provider not in PROVIDERS:
            raise _no_such_provider(llm)
        known = llm.input_cost_per_token is not None or llm.provider == _REPORTS_COST
        if limits.cost is not None and not known and (await model_info(llm)).prices is None:
            raise UsageError(
                f"No price is known for {llm.model!r}, so --max-cost cannot be enforced. "
                "Pass --max-cost none; --max-steps works with any model."
            )


def changes_of_environment(
    state: ConversationState, agent: Agent, *, model: str | None, base_url: str | None
) -> str | None:
    """Describe how environment variables change the recorded model; None if they do not.

    Args:
        state: The state of the conversation.
        agent: Its agent from now on.
        model: The value of --model, which needs no notice.
        base_url: The value of --base-url.
    """
    recorded = state.agent.agent.get("llm") if state.agent is not None else None
    new = record_model(agent.llm)
    if recorded is None or new is None or _is_of_several(recorded) or _is_of_several(new):
        return None
    was, now = LLM.model_validate(recorded), LLM.model_validate(new)
    if model is None and now.model != was.model:
        at = f" at {now.base_url}" if now.base_url is not None else ""
        return f"AGENTCORE_MODEL: using {now.model}{at} (before: {was.model})"
    if model is None and base_url is None and now.base_url != was.base_url:
        return f"AGENTCORE_BASE_URL: using {now.base_url} (before: {was.base_url or 'the provider'})"
    return None


def _first_problem(error: ValidationError) -> str:
    """Return the first problem of the model's settings, without pydantic's frame."""
    problem = error.errors(include_url=False, include_input=False)[0]
    return with_flags(problem["msg"].removeprefix("Value error, "))
