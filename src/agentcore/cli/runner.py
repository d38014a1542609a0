"""A run of the command line: show it, ask for approval, interrupt it, and report the outcome."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import get_args

import anyio
from pydantic import JsonValue

from agentcore.agent import Agent
from agentcore.cli.console import BAD, DIM, WARN, Glyphs, JsonLines, make_console, print_line, print_text
from agentcore.cli.conversations import describe_box, has_log, shorten_id
from agentcore.cli.failures import OutputRefused, explain, output_error
from agentcore.cli.outcome import exit_code, print_outcome
from agentcore.cli.process import Interrupts, catch_interrupts
from agentcore.cli.prompt import Person, open_keyboard, print_call
from agentcore.cli.questions import ask_person, print_question
from agentcore.cli.sandbox import Kind
from agentcore.cli.settings import Settings
from agentcore.cli.view import View
from agentcore.cli.watch import Watch
from agentcore.cli.workplace import open_workplace
from agentcore.conversation import Answered, Conversation, Declined, RunFailure, RunResult
from agentcore.errors import AgentcoreError, ModelConnectionError, RunError, ToolArgumentsError
from agentcore.events import ActionAssessed, ActionEvent, ConversationStatus, QuestionAsked
from agentcore.llm import LLM
from agentcore.messages import Message
from agentcore.record import ConversationState, Store
from agentcore.security import Approve, ConfirmationPolicy, Reject
from agentcore.usage import Limits
from agentcore.workspace import Workspace

_NOT_BEGUN = -1


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The run to do."""

    agent: Agent
    workspace: str | Workspace | None
    """The folder to work in, or the sandbox. None goes back to where a resumed conversation worked."""
    store: Store
    settings: Settings
    id: str | None = None
    before: ConversationState | None = None
    """The state of a resumed conversation: its events are not shown again."""
    heading: str | None = None
    """Text for the first line, next to the id and the folder."""
    standing: str | None = None
    """The first line of a resumed conversation, printed once its lock is held."""
    message: str | Message | None = None
    """The first message to the agent."""
    stdin_taken: bool = False
    """True if the message was read from standard input, so that questions are answered on the terminal itself."""
    confirm: ConfirmationPolicy | None = None
    limits: Limits | None = None
    decision: Approve | Reject | None = None
    """The decision about all calls that are waiting at the start."""
    answers: tuple[tuple[str, JsonValue], ...] = ()
    """Answers to questions that are waiting at the start, with the ids of the questions."""
    checkpoints: bool = False
    """True to save the files at each step."""
    json: bool = False
    verbose: bool = False


_Decision = Approve | Reject | Answered | Declined


async def run_request(request: RunRequest) -> int:
    """Run the request and return the exit code.

    Raises:
        AgentcoreError: The conversation or the folder could not be opened.
    """
    code = _NOT_BEGUN
    # The folder is opened before the log, so that a missing folder leaves no empty conversation behind.
    async with catch_interrupts() as interrupts, open_workplace(request.workspace) as workspace:
        interrupts.last_words = "Stopped before the start."
        conversation = Conversation(
            request.agent,
            workspace,
            id=request.id,
            store=request.store,
            confirm=request.confirm,
            limits=request.limits,
            checkpoints="settled" if request.checkpoints else None,
        )
        async with conversation:
            short_id = await shorten_id(request.store, conversation.id)
            hints = request.settings.command(f"resume {short_id}")
            interrupts.last_words = f"Stopped. Log saved. Continue: {hints}"
            try:
                code = await Runner(request, conversation, interrupts, short_id).do()
            except Exception as error:
                if (refused := output_error(error)) is None:
                    raise
                task = "" if conversation.state.last_user_seq else " 'your task'"
                kept = f" Conversation {conversation.id} is saved. Continue: {hints}{task}"
                raise OutputRefused(refused, kept) from error
    caught = interrupts.caught
    if caught is not None and code == _NOT_BEGUN:
        console = make_console(stderr=True)
        print_line(console, "interrupted before the start", WARN)
        if request.id is not None and await has_log(request.store, request.id):
            print_line(console, f"continue: {request.settings.command(f'resume {request.id}')}")
    if caught is not None and (code == _NOT_BEGUN or (code and caught != signal.SIGINT)):
        return 128 + caught  # the code that the sender of the signal expects
    return code


class Runner:
    def __init__(self, request: RunRequest, conversation: Conversation, interrupts: Interrupts, short_id: str) -> None:
        self._request = request
        self._conversation = conversation
        self._interrupts = interrupts
        self._short_id = short_id
        self._console = make_console(stderr=request.json)
        self._json = JsonLines() if request.json else None
        self._keyboard: int | None = None
        self._view = View(self._console, root=conversation.workspace.root, verbose=request.verbose)

    async def do(self) -> int:
        with open_keyboard(self._console, stdin_taken=self._request.stdin_taken) as self._keyboard:
            return await self._do()

    async def _do(self) -> int:
        began = time.monotonic()
        result: RunResult | None = None
        failure: AgentcoreError | None = None
        record = None if self._json is None else self._json.event
        self._begin()
        before = self._request.before
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
            print_text(make_console(stderr=True), f"error: {explain(failure)[0]}{self._other_address(failure)}", BAD)
        if result.pending and self._keyboard is None:
            self._show_waiting(result.pending)
        code = exit_code(result)
        seconds = time.monotonic() - began
        print_outcome(self._console, self._short_id, result, self._view, self._request.settings, seconds=seconds)
        if self._json is not None:
            self._json.result(self._conversation.id, result, code)
        return code

    def _begin(self) -> None:
        """Print the heading."""
        conversation, heading, before = self._conversation, self._request.heading, self._request.before
        if self._request.standing is not None:
            print_text(self._console, self._request.standing, DIM)
        opened = conversation.state.workspace
        if heading is not None:
            between = f" {Glyphs(self._console.encoding).between} "
            is_box = opened is not None and opened.workspace in get_args(Kind)
            where = describe_box(conversation.state) if is_box else conversation.workspace.root
            print_line(self._console, between.join((conversation.id, heading, where)), DIM)
        for sentence in () if opened is None else opened.loosened:
            print_text(self._console, f"sandbox: {sentence}", WARN)
        if conversation.repaired is not None:
            print_text(self._console, f"removed the incomplete end of the log: {conversation.repaired}", DIM)
        for action in () if before is None else before.open_actions.values():
            self._view.expect(action.event)

    def _show_waiting(self, pending: Sequence[ActionEvent]) -> None:
        """Print the waiting calls where there is no terminal to ask at."""
        root = self._conversation.workspace.root
        for number, event in enumerate(pending, 1):
            if (asked := self._question_of(event)) is not None:
                print_question(self._console, asked)
                continue
            which = f"{number} of {len(pending)}" if len(pending) > 1 else ""
            question = "Waiting for approval"
            assessment = self._assessment_of(event)
            print_call(self._console, event, question, which=which, root=root, assessment=assessment)
        print_line(self._console, "")

    def _question_of(self, event: ActionEvent) -> QuestionAsked | None:
        action = self._conversation.state.open_actions.get(event.id)
        return None if action is None else action.question

    def _assessment_of(self, event: ActionEvent) -> ActionAssessed | None:
        action = self._conversation.state.open_actions.get(event.id)
        return None if action is None else action.assessment

    def _other_address(self, failure: AgentcoreError) -> str:
        """Return a hint for an unreachable address that came from the log."""
        request, llm = self._request, self._request.agent.llm
        from_log = request.before is not None and request.settings.base_url is None
        error = failure.error if isinstance(failure, RunError) else failure
        if not (from_log and isinstance(error, ModelConnectionError)):
            return ""
        if not isinstance(llm, LLM) or llm.base_url is None:
            return ""
        elsewhere = request.settings.command(f"resume {self._short_id} --base-url")
        return f" The address came from the log. Use another one: {elsewhere} URL"

    def _broken(self, error: AgentcoreError) -> RunResult:
        failure = RunFailure(code=type(error).__name__, detail=str(error))
        return RunResult(status=ConversationStatus.ERROR, usage=self._view.usage, error=failure)

    async def _run(self) -> RunResult:
        conversation, request = self._conversation, self._request
        with self._interrupts.handled_by(self._on_interrupt):
            root = conversation.workspace.root
            for question_id, value in request.answers:
                await conversation.answer(question_id, value, by=request.settings.person)
            if request.decision is not None and conversation.state.pending:
                await self._apply([(event, request.decision) for event in conversation.state.pending])
            result = await conversation.run(request.message)
        if self._keyboard is None:
            return result
        person = Person(self._console, self._keyboard, request.settings, self._interrupts, root)
        while result.pending and self._interrupts.caught is None:
            decisions = await self._ask(person, result.pending)
            if not decisions or self._interrupts.caught is not None:
                break
            left_for_later = len(result.pending) - len(decisions)
            with self._interrupts.handled_by(self._on_interrupt):
                await self._apply(decisions, person)
                result = await conversation.run()
            if left_for_later:
                break
        return result

    async def _on_interrupt(self) -> None:
        self._view.make_room()
        print_text(self._console, "Interrupting ... (press Ctrl-C again to quit at once)", WARN)
        with suppress(AgentcoreError):  # the caller of the run gets the error
            await self._conversation.interrupt("Ctrl-C")

    async def _ask(self, person: Person, pending: Sequence[ActionEvent]) -> list[tuple[ActionEvent, _Decision]]:
        """Ask about each call; calls that are left for later (l, Ctrl-D or Ctrl-C) are not in the result."""
        decisions: list[tuple[ActionEvent, _Decision]] = []
        with anyio.CancelScope() as asking:  # noqa: ASYNC912 what is awaited in it is a checkpoint wherever it waits

            async def stop() -> None:
                asking.cancel()

            with self._interrupts.handled_by(stop):
                self._view.end()
                for number, event in enumerate(pending, 1):
                    which = f"{number} of {len(pending)}" if len(pending) > 1 else ""
                    if (question := self._question_of(event)) is not None:
                        by = self._request.settings.person
                        answer = await ask_person(self._console, question, person.line, by)
                    else:
                        answer = await person.decide(event, which, self._assessment_of(event))
                    self._view.seen(event)
                    if answer is not None:
                        decisions.append((event, answer))
        print_line(self._console, "")
        return decisions

    async def _apply(self, decisions: Sequence[tuple[ActionEvent, _Decision]], person: Person | None = None) -> None:
        """Record the decisions: rejections first, because an approval starts the run again."""
        conversation = self._conversation
        plain: list[str] = []
        changed: list[tuple[ActionEvent, Approve]] = []
        for event, decision in decisions:
            if isinstance(decision, Answered):
                await conversation.answer(event.id, decision.value, by=decision.by)
            elif isinstance(decision, Declined):
                await conversation.decline(event.id, decision.reason, by=decision.by)
            elif isinstance(decision, Reject):
                await conversation.reject(decision.reason, [event.id], by=decision.by)
            elif self._question_of(event) is not None:
                pass  # --approve answers no question
            elif decision.arguments is None:
                plain.append(event.id)
            else:
                changed.append((event, decision))
        for event, decision in changed:
            try:
                await conversation.approve([event.id], decision.arguments, by=decision.by)
            except ToolArgumentsError as error:
                # The call stays waiting and is asked about again.
                if person is not None:
                    person.warn(str(error))
        if plain:
            await conversation.approve(plain, by=self._request.settings.person)
