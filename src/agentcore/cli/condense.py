"""`agentcore condense`: make the history that a conversation's model is shown shorter, now."""

from __future__ import annotations

import time

import anyio
from rich.console import Console

from agentcore._value import Value
from agentcore.agent import Agent
from agentcore.cli.console import BAD, DIM, Glyphs, JsonLines, make_console, print_line, print_text, styled
from agentcore.cli.conversations import describe_standing, find_conversation, open_store, shorten_id
from agentcore.cli.failures import UsageError, explain
from agentcore.cli.mcp_files import NO_SERVERS, had_servers, trusted_servers
from agentcore.cli.models import changes_of_environment, rebuild_agent
from agentcore.cli.process import catch_interrupts
from agentcore.cli.sandbox import Kind
from agentcore.cli.settings import Settings
from agentcore.cli.text import duration, spent
from agentcore.cli.view import View
from agentcore.cli.workplace import find_workplace, open_workplace
from agentcore.conversation import Conversation
from agentcore.errors import LimitReached
from agentcore.events import Condensation, ConversationStatus, UsageEvent
from agentcore.record import ConversationState, Store, read_log
from agentcore.usage import Usage
from agentcore.workspace import Workspace

_LIMIT_REACHED = 6


class CondenseResult(Value):
    """The last line of `agentcore condense --json`."""

    condenser: str | None = None
    """None if the history stayed as it was."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    forgotten: int = 0
    """How many events the model is not shown any more."""
    masked: int = 0
    """The content of how many answers is left out."""
    usage: Usage = Usage()
    """The usage of the call that wrote the summary."""
    error: str | None = None


async def condense_conversation(
    given: str | None,
    settings: Settings,
    *,
    workspace: str | None,
    model: str | None,
    base_url: str | None,
    retries: int | None,
    sandbox: tuple[Kind | None, str | None, str | None],
    json: bool,
    verbose: bool,
) -> int:
    """Make the history of a conversation shorter and return the exit code."""
    store = open_store(settings)
    state = await read_log(store, await find_conversation(store, settings, given))
    where = await find_workplace(state, settings, workspace, sandbox, command="condense")
    if not state.last_user_seq:
        raise UsageError(f"Conversation {state.conversation_id!r} has no task yet, so there is nothing to shorten.")
    console = make_console(stderr=json)
    servers = await trusted_servers(settings, where.folder, console) if had_servers(state) else NO_SERVERS
    agent = rebuild_agent(state, settings, model=model, base_url=base_url, retries=retries, servers=servers)
    standing = f"{state.conversation_id}: {describe_standing(state)}, in {where.shown}"
    if (changes := changes_of_environment(state, agent, model=model, base_url=base_url)) is not None:
        standing = f"{standing}\n{changes}"
    code = 130
    async with catch_interrupts() as interrupts:
        interrupts.last_words = "Stopped. Log saved."
        lines = JsonLines() if json else None
        code = await _condense(
            agent,
            state,
            store=store,
            place=where.place,
            console=console,
            lines=lines,
            standing=standing,
            settings=settings,
            verbose=verbose,
        )
    if interrupts.caught is not None:
        print_text(make_console(stderr=True), "Interrupted; the history stays as it was.", BAD)
        return 128 + interrupts.caught
    return code


async def _condense(
    agent: Agent,
    before: ConversationState,
    *,
    store: Store,
    place: str | Workspace | None,
    console: Console,
    lines: JsonLines | None,
    standing: str,
    settings: Settings,
    verbose: bool,
) -> int:
    began = time.monotonic()
    condensation: Condensation | None = None
    problem: str | None = None
    code = 0
    async with (
        open_workplace(place) as workspace,
        Conversation(agent, workspace, id=before.conversation_id, store=store) as conversation,
    ):
        view = View(console, root=conversation.workspace.root, verbose=verbose)
        print_text(console, standing, DIM)
        async with anyio.create_task_group() as drawing:
            drawing.start_soon(view.ticker.run)
            view.ticker.show("shortening the history")
            try:
                condensation = await conversation.condense()
            except TimeoutError:
                problem, code = f"It took longer than the {before.limits.step_seconds:g} s of a step.", 1
            except LimitReached as error:
                problem, code = explain(error)[0], _LIMIT_REACHED
            finally:
                view.end()
                drawing.cancel_scope.cancel()
        events = conversation.state.events[before.head :]
    used = sum((event.usage for event in events if isinstance(event, UsageEvent)), Usage())
    if problem is not None:
        print_text(make_console(stderr=True), f"error: {problem}", BAD)
    elif condensation is None:
        print_line(console, "nothing was shortened: too little of the history can be left out")
    else:
        view.event(condensation)
    if used.requests:
        between = f" {Glyphs(console.encoding).between} "
        print_line(console, between.join(("used: " + spent(used), duration(time.monotonic() - began))), DIM)
    again = settings.command(f"resume {await shorten_id(store, before.conversation_id)}")
    if before.status is ConversationStatus.FINISHED:
        again += " 'your message'"
    print_line(console, styled("continue: ", DIM).append(again))
    if lines is not None:
        for event in events:
            lines.event(event)
        lines.result(before.conversation_id, _result(condensation, used, problem), code)
    return code


def _result(condensation: Condensation | None, used: Usage, problem: str | None) -> CondenseResult:
    if condensation is None:
        return CondenseResult(usage=used, error=problem)
    return CondenseResult(
        condenser=condensation.condenser,
        tokens_before=condensation.tokens_before,
        tokens_after=condensation.tokens_after,
        forgotten=len(condensation.forgotten),
        masked=len(condensation.masked),
        usage=used,
    )
