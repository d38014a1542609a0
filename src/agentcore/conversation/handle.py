"""The handle of a conversation: what a program holds. It owns no task and no scope, so any task may use it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from copy import deepcopy
from os import PathLike
from typing import Any, Self

from anyio import AsyncContextManagerMixin
from anyio.lowlevel import checkpoint_if_cancelled
from pydantic import JsonValue

from agentcore import commands
from agentcore._arguments import check_arguments, checked
from agentcore.agent import Agent
from agentcore.conversation.answering import check_in_thread
from agentcore.conversation.decide import find_question
from agentcore.conversation.deltas import DeltaCursor
from agentcore.conversation.guards import forbid_reentry
from agentcore.conversation.journal import Attachment
from agentcore.conversation.link import HostsConversations, Link
from agentcore.conversation.local import LocalLink
from agentcore.conversation.pending import select_pending
from agentcore.conversation.questions import NO_ANSWER, OnQuestion
from agentcore.conversation.result import RunResult
from agentcore.conversation.run import RunStream, run_to_end
from agentcore.conversation.serve import serve_here
from agentcore.conversation.setup import ARGUMENTS, CALLS, INTERRUPT, Setup, check_message
from agentcore.conversation.switch import switch_command
from agentcore.conversation.watch import EventCursor, check_seq
from agentcore.errors import ConversationError, RunError
from agentcore.events import CheckpointTimes, Condensation, WorkspaceCheckpointed
from agentcore.messages import Message
from agentcore.record import ConversationState, Store
from agentcore.secrets import SecretRegistry, SecretSource
from agentcore.security import Checks, Confirm, as_checks, record_checks
from agentcore.usage import Limits
from agentcore.workspace import Workspace


class Conversation(AsyncContextManagerMixin):
    """A conversation with an agent: `async with Conversation(agent, workspace=...) as conversation`.

    What happens in it is an append-only log, written to the store before anyone sees it; `state` is what the log
    says. Leaving the context interrupts what runs, answers what is open, and closes everything. It belongs to the event
    loop that it was entered in: in another one, or in another thread, all that waits or changes anything is refused.

    Args:
        agent: Who works. None goes on with the recorded agent of a conversation that the store knows.
        workspace: Where it works: a folder, or a workspace. One that is not entered yet is entered and left here. None
            is where a conversation that the store knows worked last; for a new one, the current folder.
        id: A conversation's id. One that the store knows is gone on with; another one begins with this id.
        store: Where the log is kept; by default in memory, for as long as the process lives.
        confirm: Which actions wait for a person: a policy, a check or a list of those, or a function, async or not, that
            is asked about each action (except `finish` and `think`). By default the recorded policy, or `NeverConfirm()`.
        limits: Budgets and deadlines; by default the recorded ones, or `Limits()`.
        secrets: Values by name that tools may use and that stay hidden: text, or functions that return it.
        deps: A value of the program's own for its tools, as `ctx.deps`; never recorded.
        on_question: A function, async or not, that answers the agent's questions. Without one they wait for `answer`.
        attended: True if somebody calls `answer` while calls run. Where nobody attends, a call's live question is declined.
        checkpoints: "settled" saves the files of the workspace at the start of each turn and whenever all calls of a reply
            are answered, "asked" in `checkpoint()` only. By default as recorded, or "asked".

    Raises:
        StoreError: on entering: the log can't be opened (`ConversationLocked`, `LogDamaged`, ...).
        NotRecorded: on entering: a part of the recorded agent has to be passed. `ToolNotFound`: a tool that was used is gone.
        WorkspaceNotRestored: on entering: `workspace` is None, and the recorded one is gone or can't be made again.
    """

    @checked()
    def __init__(
        self,
        agent: Agent | None,
        workspace: Workspace | str | PathLike[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 the name users expect
        store: Store | None = None,
        confirm: Checks | Confirm | None = None,
        limits: Limits | None = None,
        secrets: Mapping[str, SecretSource] | None = None,
        deps: Any = None,
        on_question: OnQuestion | None = None,
        attended: bool = False,
        checkpoints: CheckpointTimes | None = None,
    ) -> None:
        self._setup = Setup(
            agent, workspace, id, store, confirm, limits, secrets, deps, on_question, attended, checkpoints
        )
        self._setup.validate()
        self._opened: Link | None = None

    def __repr__(self) -> str:
        if self._opened is None:
            return f"<Conversation {self._setup.id or 'not open'}>"
        return f"<Conversation {self.id} {self.state.status}, {self.state.head} event{'' if self.state.head == 1 else 's'}>"

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        if self._opened is not None:
            raise ConversationError("A Conversation is entered once. Make another one with the same store and id.")
        workspace = self._setup.workspace
        opening = (
            workspace.open_link(self._setup) if isinstance(workspace, HostsConversations) else _open_here(self._setup)
        )
        async with opening as self._opened:
            yield self

    @classmethod
    def _hosted(cls, setup: Setup, link: Link) -> Self:
        conversation = cls.__new__(cls)
        conversation._setup = setup
        conversation._opened = link
        return conversation

    @property
    def link(self) -> Link:
        """The link that carries its commands as values, for servers and other protocols; programs use the methods."""
        if self._opened is None:
            raise ConversationError("The conversation is not open: use `async with Conversation(...) as conversation`.")
        return self._opened

    @property
    def id(self) -> str:
        """The conversation's id: with the store, what it takes to go on with it."""
        return self.state.conversation_id

    @property
    def state(self) -> ConversationState:
        """The current state: status, usage, open actions, title ... It stays readable after closing."""
        return self.link.state

    @property
    def store(self) -> Store:
        """Where the log is kept."""
        return self.link.store

    @property
    def workspace(self) -> Workspace:
        """Where the agent works."""
        return self.link.workspace

    @property
    def repaired(self) -> str | None:
        """The unfinished end that was cut off the log on opening, in words; None if there was none."""
        return self.link.repaired

    async def send(self, message: str | Message) -> int:
        """Record a user's message and return its seq. While the agent works it is read at the next step.

        A message never approves anything and starts nothing; `run` does.
        """
        link = await self._live()
        return (await link.execute(commands.Send(message=check_message(message)))).seq

    async def run(self, text: str | Message | None = None) -> RunResult:
        """Work until the conversation settles: it finished, waits, was paused, is stuck, or reached a limit.

        A second `run` joins the first, and its text is sent before. Where an action waits for approval nothing is run:
        the result lists what is pending. Cancelling the last caller that waits interrupts the work.

        Raises:
            RunError: a step raised (`error`); the log has it, and `run` may be called again.
            StoreError: the log died; the conversation is over.
            ReentrantCall: called from a tool, hook or callback of this conversation.
        """
        link = await self._live()
        forbid_reentry(link.state.conversation_id, "run")
        try:
            return await run_to_end(link, None if text is None else check_message(text))
        except RunError as error:
            # Of agentcore's frames only this one. A comment behind it would add a line of ^^^^ to the traceback.
            raise error.with_traceback(None) from error.__cause__

    async def start(self, text: str | Message | None = None) -> int:
        """Begin a run that nobody waits for, or join the one that works, and return the seq at which it began.

        It goes on whatever becomes of the caller; `run()` joins it, and its failure is in the log.

        Raises:
            ConversationError: There is nothing to work on.
            StoreError: The log died.
        """
        link = await self._live()
        run = link.begin_run(commands.Run(message=None if text is None else check_message(text)), copy_context())
        return (await run.recorded()).run

    def run_stream(self, text: str | Message | None = None) -> RunStream:
        """Run, and return the events as they come: `async for event in conversation.run_stream(...)`.

        The run begins with the first event that is asked for. Breaking off leaves it running. It ends, or raises, as
        `run` does; then `.result` is there.
        """
        link = self._checked()
        forbid_reentry(link.state.conversation_id, "run_stream")
        return RunStream(link, None if text is None else check_message(text))

    def events(self, after: int | None = None) -> EventCursor:
        """Follow the log from behind `after` (None is the start, `state.head` is live only): no gap, none twice."""
        return EventCursor(self.link.state, self.link.head_signal, after)

    def deltas(self) -> DeltaCursor:
        """Follow what is being said, piece by piece, from now on. Lossy; what counts is in the log."""
        return self.link.deltas()

    async def pause(self) -> None:
        """Stop at the end of the step under way; nothing is cut off."""
        await (await self._live()).execute(commands.Pause())

    async def interrupt(self, reason: str | None = None) -> None:
        """Stop at once. Calls that run are stopped and answered; returns when that is done and recorded."""
        check_arguments(INTERRUPT, reason=reason)
        link = await self._live()
        await link.interrupt(commands.Interrupt(run=link.state.run.seq, reason=reason))

    async def interrupt_call(self, action_id: str) -> bool:
        """Stop one call that runs and leave the others alone; return whether it ran."""
        return await (await self._live()).interrupt_call(action_id)

    async def approve(
        self,
        ids: Sequence[str] | str | None = None,
        arguments: Mapping[str, JsonValue] | None = None,
        *,
        by: str | None = None,
    ) -> None:
        """Approve actions that wait (by default all but questions) and continue the work; `run` then joins it.

        Args:
            ids: Ids of the action events.
            arguments: The arguments to run it with instead, where exactly one action is approved; recorded as an edit.
            by: Who says so.

        Raises:
            NothingPending: No such action waits, or it is a question: see `answer`.
            ToolArgumentsError: The changed arguments do not fit the tool.
        """
        check_arguments(CALLS, ids=ids, arguments=arguments, by=by)
        link = await self._live()
        selected, all_that_wait = select_pending(link.state, ids, questions=False)
        edited = None if arguments is None else deepcopy(dict(arguments))  # the caller's, who may change them meanwhile
        await link.execute(commands.Approve(ids=selected, all_that_wait=all_that_wait, arguments=edited, by=by))

    async def reject(self, reason: str, ids: Sequence[str] | str | None = None, *, by: str | None = None) -> None:
        """Reject actions that wait (by default all of them); a question is declined. The model reads the reason with the next `run`.

        A call that had begun and asked is resumed with the reason, and the work continues.

        Raises:
            NothingPending: No such action waits.
        """
        check_arguments(CALLS, reason=reason, ids=ids, by=by)
        link = await self._live()
        selected, all_that_wait = select_pending(link.state, ids, questions=True)
        await link.execute(commands.Reject(ids=selected, all_that_wait=all_that_wait, reason=reason, by=by))

    async def answer(self, id: str, value: Any, *, by: str | None = None) -> None:  # noqa: A002
        """Answer a question that waits, and continue the work; `run` then joins it.

        Args:
            id: The id of the action that asks, as in `pending`, or of the question, as in `state.questions`.
            value: Text, one of the options, or what fits the question's schema.
            by: Who says so.

        Raises:
            AnswerRefused: It does not fit; the question goes on waiting.
            NothingPending: No such question waits.
        """
        check_arguments(CALLS, id=id, by=by)
        link = await self._live()
        question = find_question(link.state, id)
        checked = await check_in_thread(question, value)  # before it has to be JSON
        await link.execute(commands.Answer(question=question.id, value=checked, by=by))

    async def decline(self, id: str, reason: str | None = None, *, by: str | None = None) -> None:  # noqa: A002
        """Leave a question unanswered. The model reads the reason with the next `run`; a running call goes on without.

        A call that had begun is resumed with the reason, and the work continues.

        Raises:
            NothingPending: No such question waits.
        """
        check_arguments(CALLS, id=id, by=by)
        check_arguments(INTERRUPT, reason=reason)
        await (await self._live()).execute(commands.Decline(question=id, reason=reason or NO_ANSWER, by=by))

    async def ask(self, question: str) -> str:
        """Ask the model a side question about the conversation: the history keeps no trace, the usage counts.

        Raises:
            LimitReached: `Limits(cost=..., tokens=...)` is used up.
            ModelError: There is no answer.
        """
        check_arguments(CALLS, question=question)
        answer = await (await self._live()).job(commands.Ask(question=question))
        assert isinstance(answer, str)
        return answer

    async def condense(self) -> Condensation | None:
        """Make the history that the model is shown shorter, with the agent's condenser, and return the cut as the log has it.

        None where that would free too little. Without a condenser the agent's model writes a `Summary`. During a step it waits for the step's end; where the history was rewound or
        cut meanwhile, nothing is done. Usage counts.

        Raises:
            InvalidCondensation: A condenser of the program's own forgets what has to stay, or nothing.
            LimitReached: `Limits(cost=..., tokens=...)` is used up.
            ModelError: The condenser asked a model, and there is no answer.
            TimeoutError: It took longer than `Limits.step_seconds`.
            TypeError: A condenser of the program's own is not async, or returned something else.
        """
        link = await self._live()
        forbid_reentry(link.state.conversation_id, "condense")
        seq = await link.job(commands.Condense())
        if seq is None:
            return None
        assert isinstance(seq, int)
        cut = link.state.events[seq - 1]
        assert isinstance(cut, Condensation)
        return cut

    async def checkpoint(self) -> WorkspaceCheckpointed:
        """Save the files of the workspace, and return the checkpoint as the log has it. During a step it waits for the step's end.

        Untracked files are saved too, also those in repositories inside the project. What git ignores is not, nor is a file
        of more than 100 MB, nor any `.git`. The workspace needs git and Python.

        Raises:
            WorkspaceError: They cannot be saved.
        """
        link = await self._live()
        forbid_reentry(link.state.conversation_id, "checkpoint")
        seq = await link.job(commands.Checkpoint())
        assert isinstance(seq, int)
        saved = link.state.events[seq - 1]
        assert isinstance(saved, WorkspaceCheckpointed)
        return saved

    async def rewind(self, to: int, *, files: bool = False) -> None:
        """Go on from an earlier point, or from one on a branch that was left. The log keeps everything.

        Usage, limits and policy stay as they are.

        Args:
            to: The seq of a settled point.
            files: Make the files of the workspace those of the last checkpoint at or before that point. What is there now
                is saved first; to have it back, rewind with files to the `WorkspaceCheckpointed` of that, or behind it. Without
                it files stay as they are. The model reads which it was.

        Raises:
            RewindRefused: `to` is not a settled point (`.nearest` is one), the agent works, or there is no such checkpoint.
            WorkspaceError: The files could not be saved, and nothing was done; or some could not be brought back.
            TypeError: `to` is no int, or `files` is no bool.
        """
        check_arguments(CALLS, files=files)
        await (await self._live()).execute(commands.Rewind(to=check_seq("to", to), files=files))

    async def fork(self, at: int | None = None, *, id: str | None = None) -> str:  # noqa: A002
        """Copy the branch up to `at` (by default all of it) into a new log of the same store, and return its id.

        Raises:
            RewindRefused: `at` is not a settled point.
            TypeError: `at` is neither None nor an int.
        """
        check_arguments(ARGUMENTS, id=id)
        link = await self._live()
        if at is not None:
            check_seq("at", at)
        await link.job(job := commands.Fork(at=at) if id is None else commands.Fork(at=at, conversation=id))
        return job.conversation

    async def set_limits(self, limits: Limits) -> None:
        """Hold the conversation to these limits from now on, the run under way included."""
        check_arguments(CALLS, limits=limits)
        await (await self._live()).execute(commands.SetLimits(limits=limits))

    async def set_policy(self, policy: Checks) -> None:
        """Let this policy, or these checks, decide which actions wait, from the next reply on."""
        check_arguments(CALLS, policy=policy)
        command = commands.SetPolicy(policy=record_checks(policy))
        await (await self._live()).execute(command, Attachment(checks=as_checks(policy)))

    async def set_agent(self, agent: Agent) -> None:
        """Let this agent work from the next step on; a step under way, and its calls, end with the one before.

        To switch the model only, pass `dataclasses.replace(agent, llm=...)`. A rewind does not bring the agent before back.

        Raises:
            ToolNotFound: It lacks a tool that was used in this conversation, and has no toolsets.
        """
        check_arguments(CALLS, agent=agent)
        link = await self._live()
        await link.execute(*switch_command(agent, link.state))

    async def set_title(self, title: str) -> None:
        """Record a title."""
        check_arguments(CALLS, title=title)
        await (await self._live()).execute(commands.SetTitle(title=title))

    async def set_tags(self, tags: Mapping[str, str]) -> None:
        """Record tags, in place of those that were there."""
        check_arguments(CALLS, tags=tags)
        await (await self._live()).execute(commands.SetTags(tags=dict(tags)))

    async def add_secrets(self, secrets: Mapping[str, SecretSource]) -> None:
        """Register more secrets. History that was written before stays as it is."""
        check_arguments(CALLS, secrets=secrets)
        link = await self._live()
        SecretRegistry(secrets)  # refuses all of them where one can't be used
        await link.execute(commands.AddSecrets(names=tuple(secrets)), Attachment(secrets=dict(secrets)))

    async def close(self) -> None:
        """End the conversation: interrupt what runs, answer what is open, let go of everything. May be called twice.

        Raises:
            ReentrantCall: Called from a tool, hook or callback of this conversation.
        """
        await self.link.close()

    async def delete(self) -> None:
        """Close the conversation, if it is open, and remove its log and the outputs it kept in the workspace.

        Raises:
            StoreError: The log could not be removed, is gone already (`ConversationNotFound`), or the conversation was
                closed and opened again elsewhere (`ConversationLocked`).
            ReentrantCall: Called from a tool, hook or callback of this conversation.
        """
        await self.link.job(commands.Delete())

    async def _live(self) -> Link:
        # A caller that is cancelled leaves with that, not with an error that it can do nothing about.
        await checkpoint_if_cancelled()
        link = self._checked()
        link.check_loop()
        return link

    def _checked(self) -> Link:
        link = self.link
        link.check()
        return link


@asynccontextmanager
async def _open_here(setup: Setup) -> AsyncGenerator[Link]:
    async with serve_here(setup) as core:
        yield LocalLink(core)
