"""Letting a conversation work while a person watches: run, ask, interrupt, and tell what it came to."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio

from agentcore.agent import Agent
from agentcore.cli.console import BAD, DIM, WARN, Glyphs, JsonLines, make_console, say, say_words
from agentcore.cli.conversations import is_there
from agentcore.cli.failures import OutputRefused, explain, of_the_output
from agentcore.cli.outcome import exit_code, say_outcome
from agentcore.cli.process import Interrupts, catch_interrupts
from agentcore.cli.prompt import Person, can_ask, show_call
from agentcore.cli.settings import Settings
from agentcore.cli.view import View
from agentcore.cli.watch import Watch
from agentcore.conversation import Conversation, RunFailure, RunResult
from agentcore.errors import AgentcoreError, ModelConnectionError, RunError, ToolArgumentsError
from agentcore.events import ActionAssessed, ActionEvent, ConversationStatus
from agentcore.llm import LLM
from agentcore.record import ConversationState, Store
from agentcore.security import Approve, ConfirmationPolicy, Reject
from agentcore.usage import Limits
from agentcore.workspace import LocalWorkspace

_NOT_BEGUN = -1


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is to be done."""

    agent: Agent
    workspace: str
    store: Store
    settings: Settings
    id: str | None = None
    before: ConversationState | None = None
    """What a conversation that is gone on with was before: that is not shown again."""
    heading: str | None = None
    """What to say of it at the beginning, besides its id and its place."""
    standing: str | None = None
    """What to say of one that is gone on with, as soon as it is held: until then another process may work on it."""
    message: str | None = None
    """What to tell the agent first."""
    confirm: ConfirmationPolicy | None = None
    limits: Limits | None = None
    decision: Approve | Reject | None = None
    """The answer to everything that waits when it begins, given beforehand."""
    json: bool = False
    verbose: bool = False


async def work(job: Job) -> int:
    """Do it, and give the exit code.

    Raises:
        AgentcoreError: The conversation, or the folder, could not be opened.
    """
    code = _NOT_BEGUN
    # The folder is entered before there is a log: where nobody can work, no empty conversation is left behind.
    async with catch_interrupts() as interrupts, LocalWorkspace(job.workspace) as workspace:
        interrupts.last_words = "left at once, before it began"
        conversation = Conversation(
            job.agent, workspace, id=job.id, store=job.store, confirm=job.confirm, limits=job.limits
        )
        async with conversation:
            go_on = job.settings.command(f"resume {conversation.id}")
            interrupts.last_words = f"left at once; the log is kept. go on: {go_on}"
            try:
                code = await _Work(job, conversation, interrupts).do()
            except Exception as error:
                if (refused := of_the_output(error)) is None:
                    raise
                task = "" if conversation.state.last_user_seq else " 'your task'"
                kept = f" Conversation {conversation.id} is kept; to go on: {go_on}{task}"
                raise OutputRefused(refused, kept) from error
    caught = interrupts.caught
    if caught is not None and code == _NOT_BEGUN:
        console = make_console(stderr=True)
        say(console, "interrupted before it began", WARN)
        if job.id is not None and await is_there(job.store, job.id):
            say(console, f"go on: {job.settings.command(f'resume {job.id}')}")
    if caught is not None and (code == _NOT_BEGUN or (code and caught != signal.SIGINT)):
        return 128 + caught  # what ends programs expects to hear its own signal's number
    return code


class _Work:
    def __init__(self, job: Job, conversation: Conversation, interrupts: Interrupts) -> None:
        self._job = job
        self._conversation = conversation
        self._interrupts = interrupts
        self._console = make_console(stderr=job.json)
        self._json = JsonLines() if job.json else None
        self._view = View(self._console, root=conversation.workspace.root, verbose=job.verbose)

    async def do(self) -> int:
        began = time.monotonic()
        result: RunResult | None = None
        failure: AgentcoreError | None = None
        record = None if self._json is None else self._json.event
        self._begin()
        before = self._job.before
        watch = Watch(self._conversation, self._view, record, 0 if before is None else before.head)
        async with anyio.create_task_group() as watching:
            watch.start(watching)
            try:
                result = await self._run()
            except RunError as error:
                failure, result = error, error.result
            except AgentcoreError as error:
                failure, result = error, self._broken(error)
            await watch.catch_up()
            watching.cancel_scope.cancel()
        assert result is not None
        self._view.end()
        if failure is not None:
            say_words(make_console(stderr=True), f"error: {explain(failure)[0]}{self._other_address(failure)}", BAD)
        if result.pending and not can_ask(self._console):
            self._show_waiting(result.pending)
        code = exit_code(result)
        seconds = time.monotonic() - began
        say_outcome(self._console, self._conversation.id, result, self._view, self._job.settings, seconds=seconds)
        if self._json is not None:
            self._json.result(self._conversation.id, result, code)
        return code

    def _begin(self) -> None:
        """Say what is about to go on."""
        conversation, heading, before = self._conversation, self._job.heading, self._job.before
        if self._job.standing is not None:
            say(self._console, self._job.standing, DIM)
        if heading is not None:
            between = f" {Glyphs(self._console.encoding).between} "
            say(self._console, between.join((conversation.id, heading, conversation.workspace.root)), DIM)
        if conversation.repaired is not None:
            say(self._console, f"cut off the end of the log, which was not whole: {conversation.repaired}", DIM)
        for action in () if before is None else before.open_actions.values():
            self._view.expect(action.event)

    def _show_waiting(self, pending: Sequence[ActionEvent]) -> None:
        """Show what waits where nobody can be asked: somebody will decide about it from elsewhere."""
        root = self._conversation.workspace.root
        for number, event in enumerate(pending, 1):
            which = f"{number} of {len(pending)}" if len(pending) > 1 else ""
            question = "This waits for a yes or no."
            assessment = self._assessment_of(event)
            show_call(self._console, event, question, which=which, root=root, assessment=assessment)
        say(self._console, "")

    def _assessment_of(self, event: ActionEvent) -> ActionAssessed | None:
        action = self._conversation.state.open_actions.get(event.id)
        return None if action is None else action.assessment

    def _other_address(self, failure: AgentcoreError) -> str:
        """Say how to go elsewhere, where nobody answers at an address that came from the log."""
        job, llm = self._job, self._job.agent.llm
        from_log = job.before is not None and job.settings.base_url is None
        if not (from_log and isinstance(failure.__cause__ or failure, ModelConnectionError)):
            return ""
        if not isinstance(llm, LLM) or llm.base_url is None:
            return ""
        elsewhere = job.settings.command(f"resume {self._conversation.id} --base-url")
        return f" The address came from the log; to go on with another: {elsewhere} URL"

    def _broken(self, error: AgentcoreError) -> RunResult:
        failure = RunFailure(code=type(error).__name__, detail=str(error))
        return RunResult(status=ConversationStatus.ERROR, usage=self._view.usage, error=failure)

    async def _run(self) -> RunResult:
        conversation, job = self._conversation, self._job
        with self._interrupts.told(self._interrupt):
            root = conversation.workspace.root
            if job.decision is not None and conversation.state.pending:
                await self._apply([(event, job.decision) for event in conversation.state.pending])
            result = await conversation.run(job.message)
        person = Person(self._console, job.settings, self._interrupts, root)
        while result.pending and self._interrupts.caught is None and can_ask(self._console):
            decisions = await self._ask(person, result.pending)
            if not decisions or self._interrupts.caught is not None:
                break
            left_for_later = len(result.pending) - len(decisions)
            with self._interrupts.told(self._interrupt):
                await self._apply(decisions, person)
                result = await conversation.run()
            if left_for_later:
                break
        return result

    async def _interrupt(self) -> None:
        self._view.make_room()
        say(self._console, "interrupting ... (Ctrl-C again leaves at once)", WARN)
        with suppress(AgentcoreError):  # whoever waits for the run is told
            await self._conversation.interrupt("Ctrl-C")

    async def _ask(self, person: Person, pending: Sequence[ActionEvent]) -> list[tuple[ActionEvent, Approve | Reject]]:
        """Ask about each; those that are left for later, by word, Ctrl-D or Ctrl-C, are not among the answers."""
        decisions: list[tuple[ActionEvent, Approve | Reject]] = []
        with anyio.CancelScope() as asking:  # noqa: ASYNC912 what is awaited in it is a checkpoint wherever it waits

            async def stop() -> None:
                asking.cancel()

            with self._interrupts.told(stop):
                self._view.end()
                for number, event in enumerate(pending, 1):
                    which = f"{number} of {len(pending)}" if len(pending) > 1 else ""
                    answer = await person.decide(event, which, self._assessment_of(event))
                    self._view.seen(event)
                    if answer is not None:
                        decisions.append((event, answer))
        say(self._console, "")
        return decisions

    async def _apply(
        self, decisions: Sequence[tuple[ActionEvent, Approve | Reject]], person: Person | None = None
    ) -> None:
        """Record what was decided: rejections first, because an approval starts the work again."""
        conversation = self._conversation
        plain: list[str] = []
        changed: list[tuple[ActionEvent, Approve]] = []
        for event, decision in decisions:
            if isinstance(decision, Reject):
                await conversation.reject(decision.reason, [event.id], by=decision.by)
            elif decision.arguments is None:
                plain.append(event.id)
            else:
                changed.append((event, decision))
        for event, decision in changed:
            try:
                await conversation.approve([event.id], decision.arguments, by=decision.by)
            except ToolArgumentsError as error:
                # It waits on, and is asked about again.
                if person is not None:
                    person.tell(str(error))
        if plain:
            await conversation.approve(plain, by=self._job.settings.person)
