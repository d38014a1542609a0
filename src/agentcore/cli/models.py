"""The agent that the command line works with: the model that was asked for, and the tools for working on code."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

from pydantic import ValidationError

from agentcore.agent import Agent, restore_agent
from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings
from agentcore.errors import MissingExtra
from agentcore.llm import LLM
from agentcore.llm.names import KEY_VARIABLES
from agentcore.llm.native.hosts import goes_native
from agentcore.record import ConversationState
from agentcore.tools import register_tool
from agentcore_tools import FACTORIES, coding_tools

__all__ = ["agent_for", "agent_of"]

_KEY_ALONE = "_API_KEY"
"""Providers whose variables all end so are reached with a key and in no other way."""


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
    """Make the agent of a conversation again, with another model where one is asked for.

    Args:
        state: The conversation's.
        settings: Where the key comes from, and the model where none was recorded.
        model: Another model, as a flag named it.
        base_url: Another address, as a flag named it.
        retries: How often a failed model call is tried again, as a flag said it.

    Raises:
        UsageError: The model was not recorded and none was named.
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
    if model is not None or "llm" not in recorded:
        if model is None and settings.model is None:
            raise UsageError(
                f"The model of conversation {state.conversation_id!r} was not recorded (it may have been a scripted one). "
                "Name the one to go on with: --model provider/model"
            )
        llm = _model(settings, retries)
    elif isinstance(recorded["llm"], dict) and "kind" in recorded["llm"]:
        return restore_agent(recorded)  # several models, each with an address of its own
    else:
        llm = _checked(LLM.model_validate(recorded["llm"]), settings, base_url=base_url, retries=retries)
    return replace(restore_agent({**recorded, "llm": llm.record()}), llm=llm)


def _model(settings: Settings, retries: int | None) -> LLM:
    if settings.model is None:
        raise UsageError(
            "Which model? Name it with --model or in AGENTCORE_MODEL: the provider and the model, "
            "as in anthropic/claude-sonnet-4-5."
        )
    try:
        llm = LLM(model=settings.model, base_url=settings.base_url)
    except ValidationError as error:
        raise UsageError(_first_problem(error)) from None
    return _checked(llm, settings, base_url=None, retries=retries)


def _checked(llm: LLM, settings: Settings, *, base_url: str | None, retries: int | None) -> LLM:
    """Add what is not recorded of a model, and refuse at once what could only fail later."""
    changes: dict[str, object] = {"api_key": settings.api_key, "base_url": base_url, "num_retries": retries}
    try:
        llm = llm.model_copy(update={name: value for name, value in changes.items() if value is not None})
    except ValidationError as error:
        raise UsageError(_first_problem(error)) from None
    variables = KEY_VARIABLES.get(llm.provider, ())
    alone = bool(variables) and all(name.endswith(_KEY_ALONE) for name in variables)
    if alone and llm.api_key is None and llm.base_url is None and settings.keys.isdisjoint(variables):
        raise UsageError(
            f"There is no key for {llm.provider}: set the environment variable {' or '.join(variables)} "
            "(or AGENTCORE_API_KEY)."
        )
    if not goes_native(llm) and find_spec("litellm") is None:
        raise MissingExtra(f"The model {llm.model!r}", "litellm")
    return llm


def _first_problem(error: ValidationError) -> str:
    """Give what the model's settings say is wrong, without pydantic's frame around it."""
    problem = error.errors(include_url=False, include_input=False)[0]
    return problem["msg"].removeprefix("Value error, ")
