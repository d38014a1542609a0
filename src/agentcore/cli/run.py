"""`agentcore run` and `agentcore resume`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import anyio
from anyio.to_thread import run_sync
from pydantic import JsonValue

from agentcore.cli.console import DIM, JsonLines, make_console, print_line
from agentcore.cli.conversations import (
    describe_standing,
    find_conversation,
    has_log,
    open_store,
    shorten_id,
)
from agentcore.cli.failures import UsageError
from agentcore.cli.mcp_files import find_servers, had_servers
from agentcore.cli.models import (
    Tools,
    build_agent,
    changes_of_environment,
    check_model,
    rebuild_agent,
)
from agentcore.cli.questions import parse_answer
from agentcore.cli.reply_printer import ReplyPrinter
from agentcore.cli.runner import RunRequest, run_request
from agentcore.cli.sandbox import Kind, make_sandbox, sandbox_maker
from agentcore.cli.settings import Confirm, Settings
from agentcore.cli.sources import add_servers
from agentcore.cli.text import count, one_line
from agentcore.cli.workplace import find_workplace
from agentcore.conversation import RunResult
from agentcore.errors import AnswerRefused, ConversationExists, MediaError
from agentcore.events import ConversationStatus
from agentcore.ids import check_conversation_id, new_conversation_id
from agentcore.messages import Block, Message, read_media
from agentcore.record import ConversationState, Store, read_log
from agentcore.security import AlwaysConfirm, Approve, ConfirmationPolicy, ConfirmRisky, NeverConfirm, Reject
from agentcore.usage import Limits

_STDIN: Final = "-"
"""The task or message that standard input has."""

_POLICIES: Final[Mapping[Confirm, Callable[[], ConfirmationPolicy]]] = {
    "never": NeverConfirm,
    "always": AlwaysConfirm,
    "risky": ConfirmRisky,
}


async def run_task(
    task: str,
    settings: Settings,
    *,
    workspace: str,
    system_prompt: str | None,
    tools: Tools,
    without: Collection[str],
    mcp: Sequence[str],
    condenser: str,
    images: Sequence[str],
    limits: Mapping[str, object],
    retries: int | None,
    conversation_id: str | None,
    sandbox: tuple[Kind | None, str | None, str | None],
    checkpoints: bool,
    json: bool,
    verbose: bool,
) -> int:
    """Start a conversation with a task and return the exit code."""
    prompt = None if system_prompt is None else await _read_prompt(system_prompt)
    agent = build_agent(
        settings, retries=retries, tools=tools, system_prompt=prompt, without=without, condenser=condenser
    )
    changed_limits = Limits().model_copy(update=limits) if limits else None
    await check_model(agent.llm, changed_limits or Limits())
    store = open_store(settings)
    if conversation_id is not None:
        await _refuse_known(store, conversation_id)
    conversation_id = conversation_id or new_conversation_id()
    maker = sandbox_maker(*sandbox, labels={"conversation": conversation_id})
    servers = await find_servers(
        settings,
        workspace,
        mcp,
        make_console(stderr=json),
        boxed=maker is not None,
        # Nobody knows what the tools of a server do, so an agent that only reads has those that were asked for.
        named_only="mcp" in without or tools != "coding",
        stdin_taken=task == _STDIN,
    )
    return await run_request(
        RunRequest(
            agent=add_servers(agent, servers.toolsets()),
            workspace=workspace if maker is None else make_sandbox(maker, workspace),
            store=store,
            settings=settings,
            id=conversation_id,
            heading=agent.llm.name,
            message=await read_message(task, images),
            stdin_taken=task == _STDIN,
            confirm=None if settings.confirm is None else _POLICIES[settings.confirm](),
            limits=changed_limits,
            checkpoints=checkpoints,
            json=json,
            verbose=verbose,
        )
    )


async def read_message(text: str, images: Sequence[str] = ()) -> str | Message:
    """Return a task or message; "-" reads it from standard input.

    Raises:
        UsageError: It is empty, or an image cannot be read.
    """
    media = [await _read_image(path) for path in images]
    if text == _STDIN:
        text = await run_sync(sys.stdin.read, abandon_on_cancel=True)
    if not text.strip():
        raise UsageError("The task is empty.")
    return Message.user(text, *media) if media else text


async def _read_image(path: str) -> Block:
    try:
        return await read_media(path)
    except MediaError as error:
        raise UsageError(f"--image: {error}") from None
    except OSError as error:
        raise UsageError(f"--image: cannot read {path!r}: {error.strerror}.") from None


async def _read_prompt(given: str) -> str:
    """Return the text of --system-prompt; "@FILE" reads it from a file."""
    text = given
    if given.startswith("@"):
        path = given[1:]
        try:
            text = await (await anyio.Path(path).expanduser()).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--system-prompt: cannot read {path!r}: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise UsageError(f"--system-prompt: {path!r} is not UTF-8 text.") from None
    if not text.strip():
        raise UsageError("The system prompt is empty.")
    return text


async def _refuse_known(store: Store, conversation_id: str) -> None:
    try:
        check_conversation_id(conversation_id)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if await has_log(store, conversation_id):
        raise ConversationExists(conversation_id, store.location)


def _read_answers(answers: Sequence[str], state: ConversationState) -> tuple[tuple[str, JsonValue], ...]:
    """Return the answers with the ids of their questions, before anything is opened or recorded.

    Raises:
        UsageError: There are more answers than questions, or one does not fit.
    """
    questions = [question for question in state.questions if not question.live]  # the calls of live ones are gone
    if len(answers) > len(questions):
        raise UsageError(
            f"{count(len(answers), 'answer')} for {count(len(questions), 'waiting question')} in {state.conversation_id!r}."
        )
    read: list[tuple[str, JsonValue]] = []
    for question, text in zip(questions, answers, strict=False):
        try:
            read.append((question.id, parse_answer(question, text)))
        except AnswerRefused as error:
            about = one_line(question.text)
            about = about if len(about) <= 80 else f"{about[:77]}..."
            raise UsageError(f"--answer does not answer {about!r}. {error}") from None
    return tuple(read)


async def resume_conversation(
    given: str | None,
    message: str | None,
    settings: Settings,
    *,
    workspace: str | None,
    model: str | None,
    base_url: str | None,
    confirm: Confirm | None,
    approve: bool,
    reject: str | None,
    without: Collection[str],
    mcp: Sequence[str],
    answers: Sequence[str],
    images: Sequence[str],
    limits: Mapping[str, object],
    retries: int | None,
    sandbox: tuple[Kind | None, str | None, str | None],
    json: bool,
    verbose: bool,
) -> int:
    """Resume a conversation and return the exit code."""
    if given is not None and message is None and " " in given.strip():
        given, message = None, given  # ids have no spaces: this is a message for the last conversation
    store = open_store(settings)
    words = " ".join(each for each in (given, message) if each is not None)
    conversation_id = await find_conversation(store, settings, given, or_message=words)
    state = await read_log(store, conversation_id)
    if images and message is None:
        raise UsageError("An image needs a message to go with: agentcore resume ID 'your message' --image FILE")
    text = None if message is None else await read_message(message, images)
    if text is None and not state.last_user_seq:
        raise UsageError(
            f"Conversation {conversation_id!r} has no task yet. "
            f"Give it one: {settings.command(f'resume {conversation_id}')} 'your task'"
        )
    where = await find_workplace(state, settings, workspace, sandbox, command="resume")
    if (approve or reject is not None) and not state.pending:
        raise UsageError(f"No call is waiting for approval in {conversation_id!r}.")
    given_answers = await run_sync(_read_answers, answers, state)
    decision: Approve | Reject | None = None
    if approve:
        decision = Approve(by=settings.person)
    elif reject is not None:
        decision = Reject(reject, by=settings.person)
    console = make_console(stderr=json)
    standing = f"{conversation_id}: {describe_standing(state)}, in {where.shown}"
    if state.status is ConversationStatus.FINISHED and text is None:
        print_line(console, standing, DIM)
        print_line(console, "")
        ReplyPrinter(console).print_paragraph(state.answer or "")
        print_line(
            console,
            f"continue: {settings.command(f'resume {await shorten_id(store, conversation_id)}')} 'your task'",
        )
        if json:
            result = RunResult(status=state.status, text=state.answer, first_seq=state.run.seq, last_seq=state.head)
            JsonLines().result(conversation_id, result, 0)
        return 0
    servers = await find_servers(
        settings,
        where.folder,
        mcp,
        console,
        boxed=where.boxed,
        named_only="mcp" in without or not had_servers(state),
        stdin_taken=message == _STDIN,
    )
    agent = rebuild_agent(
        state, settings, model=model, base_url=base_url, retries=retries, without=without, servers=servers
    )
    changed_limits = state.limits.model_copy(update=limits) if limits else None
    await check_model(agent.llm, changed_limits or state.limits)
    changes = changes_of_environment(state, agent, model=model, base_url=base_url)
    return await run_request(
        RunRequest(
            agent=agent,
            workspace=where.place,
            store=store,
            settings=settings,
            id=conversation_id,
            before=state,
            standing=standing if changes is None else f"{standing}\n{changes}",
            message=text,
            stdin_taken=message == _STDIN,
            confirm=None if confirm is None else _POLICIES[confirm](),
            limits=changed_limits,
            decision=decision,
            answers=given_answers,
            json=json,
            verbose=verbose,
        )
    )
