"""The agent that the command line works with: the model that was asked for, and the tools for working on code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, cast

from pydantic import ValidationError

from agentcore.agent import Agent, restore_agent
from agentcore.cli.failures import UsageError, with_flags
from agentcore.cli.settings import Settings
from agentcore.errors import AddressNotAllowed, MissingExtra
from agentcore.llm import LLM, Model, allow_base_url, record_model, restore_model
from agentcore.llm.catalog import model_info
from agentcore.llm.names import KEY_VARIABLES, PROVIDERS
from agentcore.llm.native.hosts import goes_native
from agentcore.record import ConversationState
from agentcore.tools import register_tool
from agentcore.usage import Limits
from agentcore_tools import FACTORIES, coding_tools

_KEY_ALONE = "_API_KEY"
"""Providers whose variables all end so are reached with a key and in no other way."""

_TELLS_ITS_COST = "openrouter"
"""The provider that says of each reply what it charged."""


def agent_for(settings: Settings, *, retries: int | None = None) -> Agent:
    """Make the agent for a new conversation.

    Raises:
        UsageError: No model was named, or it can't be reached like this.
        MissingExtra: The model is reached through litellm, which is not installed.
    """
    llm = _model(settings, retries)
    return Agent(llm=llm, tools=coding_tools(llm.model))


def agent_of(
    state: ConversationState, settings: Settings, *, model: str | None, base_url: str | None, retries: int | None
) -> Agent:
    """Make the agent of a conversation again, with another model or address where one is asked for.

    Args:
        state: The conversation's.
        settings: Where the key comes from, and the model and the address that flags or the environment name.
        model: The model, if a flag named it: only that takes the place of several models.
        base_url: The address, if a flag named it.
        retries: How often a failed model call is tried again, as a flag said it.

    Raises:
        UsageError: The model was not recorded and none was named, or only the log names its address.
        AgentcoreError: A tool that it had is not there.
    """
    if state.agent is None:
        return agent_for(settings, retries=retries)
    # An installed distribution declares its tools; run from its sources, nobody but this does.
    for name, factory in FACTORIES.items():
        register_tool(name, factory)
    recorded = dict(state.agent.agent)
    # The model is the first to be named among what is missing. It can be named anew; the rest was some program's own.
    if programs_own := state.agent.missing["llm" not in recorded :]:
        raise UsageError(
            f"Conversation {state.conversation_id!r} worked with {', '.join(programs_own)}, which could not be recorded. "
            "Go on with it in the program that began it."
        )
    if settings.base_url is not None:
        allow_base_url(settings.base_url)
    several = _is_of_several(recorded.get("llm"))
    if several and model is None:
        if base_url is not None:
            raise UsageError(
                f"Conversation {state.conversation_id!r} works with several models, each at an address of its own. "
                "Name the one to go on with too: --model"
            )
        return restore_agent(recorded, llm=_restored(cast("Mapping[str, Any]", recorded["llm"])))
    if "llm" not in recorded:
        if settings.model is None:
            raise UsageError(
                f"The model of conversation {state.conversation_id!r} was not recorded (it may have been a scripted one). "
                "Name the one to go on with: --model provider/model"
            )
        llm = _model(settings, retries)
    elif several:
        llm = _model(settings, retries)
    else:
        before = LLM.model_validate(recorded["llm"])
        named = None if settings.model is None else _named(settings, server=before.base_url)
        llm = before if named is None or named.model == before.model else named
        at = settings.base_url or llm.base_url
        # Without a flag or a variable that names it, the address is the log's alone.
        llm = cast("LLM", _restored({**llm.record(), "base_url": at}))
        llm = _checked(llm, settings, retries=retries)
    return restore_agent(recorded, llm=llm)


def _restored(recorded: Mapping[str, Any]) -> Model:
    try:
        return restore_model(recorded)
    except ValidationError as error:
        raise UsageError(_first_problem(error)) from None
    except AddressNotAllowed as error:
        raise UsageError(
            f"The log says that {error.model} is at {error.address}, which nobody here has named, so nothing is sent there. "
            f"If the address is right, name it: --base-url {error.address}"
        ) from None


def _is_of_several(recorded: object) -> bool:
    """Say whether a recorded model is one that is made of others."""
    return isinstance(recorded, dict) and "kind" in recorded


def _each_llm(recorded: Any) -> Iterator[LLM]:
    """Give each `LLM` that a recorded model is made of."""
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
            "Which model? Name it with --model or in AGENTCORE_MODEL: the provider and the model, "
            "as in anthropic/claude-sonnet-4-5."
        )
    return _checked(_named(settings), settings, retries=retries)


def _named(settings: Settings, *, server: str | None = None) -> LLM:
    """Give the model that flags or the environment name; one without a provider may be known to this server."""
    assert settings.model is not None
    try:
        return LLM(model=settings.model, base_url=settings.base_url)
    except ValidationError as error:
        if settings.base_url is None and server is not None:
            return LLM(model=settings.model, base_url=server)
        raise UsageError(_first_problem(error)) from None


def _checked(llm: LLM, settings: Settings, *, retries: int | None) -> LLM:
    """Add what is not recorded of a model, and refuse at once what could only fail later."""
    # An empty key says that none may be sent where it is.
    key = settings.api_key if llm.api_key is None else None
    changes: dict[str, object] = {"api_key": key, "num_retries": retries}
    try:
        llm = llm.model_copy(update={name: value for name, value in changes.items() if value is not None})
    except ValidationError as error:
        raise UsageError(_first_problem(error)) from None
    through_litellm = not goes_native(llm)
    missing = through_litellm and find_spec("litellm") is None
    if missing and llm.provider not in PROVIDERS:
        raise _no_such_provider(llm)  # what could be installed would not know it either
    variables = KEY_VARIABLES.get(llm.provider, ())
    alone = bool(variables) and all(name.endswith(_KEY_ALONE) for name in variables)
    if alone and llm.api_key is None and llm.base_url is None and settings.keys.isdisjoint(variables):
        besides = f" {_without_litellm(llm)}" if missing else ""
        raise UsageError(
            f"There is no key for {llm.provider}: set the environment variable {' or '.join(variables)} "
            f"(or AGENTCORE_API_KEY).{besides}"
        )
    if missing:
        raise _without_litellm(llm)
    return llm


def _without_litellm(llm: LLM) -> MissingExtra:
    return MissingExtra(f"The model {llm.model!r}", "litellm")


def _no_such_provider(llm: LLM) -> UsageError:
    close = get_close_matches(llm.provider, PROVIDERS, n=3)
    meant = (
        f"did you mean {' or '.join(repr(name) for name in close)}?" if close else "is it written as its maker does?"
    )
    return UsageError(
        f"There is no provider {llm.provider!r} (in {llm.model!r}): {meant} "
        "For a server of your own, say where it is: --base-url."
    )


async def check_model(model: Model, limits: Limits) -> None:
    """Refuse what the lists of providers and prices say can't work.

    Raises:
        UsageError: Nobody knows the provider, or there is a limit on the cost and nobody knows the price.
    """
    for llm in _each_llm(record_model(model)):
        if llm.provider not in PROVIDERS:
            raise _no_such_provider(llm)
        known = llm.input_cost_per_token is not None or llm.provider == _TELLS_ITS_COST
        if limits.cost is not None and not known and (await model_info(llm)).prices is None:
            raise UsageError(
                f"A limit of ${limits.cost} can't be kept: nobody here knows what {llm.model!r} costs. "
                "Lift it with --max-cost none (--max-steps works with any model)."
            )


def changes_of_environment(
    state: ConversationState, agent: Agent, *, model: str | None, base_url: str | None
) -> str | None:
    """Say what is not as it was recorded because a variable says so; None where no variable changes anything.

    Args:
        state: The conversation's.
        agent: Its agent from now on.
        model: The model, if a flag named it: who typed that need not be told.
        base_url: The address, if a flag named it.
    """
    recorded = state.agent.agent.get("llm") if state.agent is not None else None
    new = record_model(agent.llm)
    if recorded is None or new is None or _is_of_several(recorded) or _is_of_several(new):
        return None
    was, now = LLM.model_validate(recorded), LLM.model_validate(new)
    if model is None and now.model != was.model:
        at = f" at {now.base_url}" if now.base_url is not None else ""
        return f"AGENTCORE_MODEL: now with {now.model}{at} (before: {was.model})"
    if model is None and base_url is None and now.base_url != was.base_url:
        return f"AGENTCORE_BASE_URL: now at {now.base_url} (before: {was.base_url or 'at its provider'})"
    return None


def _first_problem(error: ValidationError) -> str:
    """Give what the model's settings say is wrong, without pydantic's frame around it."""
    problem = error.errors(include_url=False, include_input=False)[0]
    return with_flags(problem["msg"].removeprefix("Value error, "))
