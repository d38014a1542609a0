"""The link to a conversation in this process."""

from __future__ import annotations

from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import replace

import anyio
from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from agentcore.commands import (
    AddSecrets,
    Answer,
    Approve,
    Ask,
    Checkpoint,
    Command,
    Condense,
    Decline,
    Delete,
    Fork,
    Interrupt,
    Job,
    Leave,
    Receipt,
    Rewind,
    Run,
    SetAgent,
)
from agentcore.conversation.answering import check_in_thread
from agentcore.conversation.ask import ask_aside
from agentcore.conversation.checkpoints import checkpoint as checkpoint_files
from agentcore.conversation.checkpoints import checkpoint_before_restore
from agentcore.conversation.close import close, delete
from agentcore.conversation.condensing import condense
from agentcore.conversation.core import Core
from agentcore.conversation.decide import decide, find_question
from agentcore.conversation.deltas import DeltaCursor
from agentcore.conversation.exceptions import safe_str
from agentcore.conversation.fork import fork
from agentcore.conversation.journal import Attachment, Decision
from agentcore.conversation.pending import validate_arguments
from agentcore.conversation.result import RunResult
from agentcore.conversation.turn import Turn
from agentcore.conversation.watch import HeadSignal
from agentcore.errors import AgentcoreError, ConversationClosed, RunError, StoreError, WorkspaceError
from agentcore.record import ConversationState, Store
from agentcore.workspace import Workspace


class LocalLink:
    """Carries commands to the core of a conversation that this process holds. See `Link`."""

    def __init__(self, core: Core) -> None:
        self.core = core

    @property
    def state(self) -> ConversationState:
        return self.core.state

    @property
    def head_signal(self) -> HeadSignal:
        return self.core.head_signal

    @property
    def workspace(self) -> Workspace:
        return self.core.workspace

    @property
    def store(self) -> Store:
        return self.core.store

    @property
    def repaired(self) -> str | None:
        return self.core.repaired

    def check(self) -> None:
        core = self.core
        if core.life.failure is not None:
            core.journal.failure_reported = True
            raise core.life.failure
        if core.life.stop.is_set():
            raise ConversationClosed(core.state.conversation_id)

    def check_loop(self) -> None:
        self.core.check_loop()

    async def execute(self, command: Command, attachment: Attachment | None = None) -> Receipt:
        attachment = attachment or Attachment(context=copy_context())
        if self.state.receipt(command.id) is None:  # else it was checked when it came first
            command, attachment = await self._prepare(command, attachment)
        journal = self.core.journal
        receipt = await journal.receipt_of(journal.hand_over(command, attachment))
        if isinstance(command, Rewind) and command.files:
            await self._files_restored(receipt)
        return receipt

    async def _files_restored(self, receipt: Receipt) -> None:
        """Wait until the files of a rewind are back.

        Raises:
            WorkspaceError: Some, or all, could not be brought back.
        """
        core = self.core
        if core.restoring is not None:
            await core.restoring.done.wait()
            core.restoring.result(core.state.conversation_id)
        moved, restored = core.state.events[receipt.seq - 1], core.state.checkpoints.last_restored
        if restored is not None and restored.cause == moved.id and restored.error is not None:
            raise WorkspaceError(restored.error)

    async def _prepare(self, command: Command, attachment: Attachment) -> tuple[Command, Attachment]:
        """Check what can only be checked where the tools and the values of secrets are, in the caller's task."""
        core = self.core
        match command:
            case Approve(ids=ids, arguments=edited) if edited is not None:
                plain = await validate_arguments(core, ids, edited)
                return command, replace(attachment, arguments=plain)
            case Answer(question=question_id, value=value):
                question = find_question(core.state, question_id)
                value = await check_in_thread(question, value)
                return command.model_copy(update={"question": question.id, "value": value}), attachment
            case Decline(question=question_id):
                question = find_question(core.state, question_id)
                return command.model_copy(update={"question": question.id}), attachment
            case SetAgent():
                # Masked as it will be recorded, so that the same agent is known as such.
                return core.secrets.masker.mask_model(command), attachment
            case Rewind(files=True):
                decide(command, core.state)  # refused before anything is saved
                await core.wait_for_job(checkpoint_before_restore(core))
                return command, attachment
            case AddSecrets():
                for name, source in attachment.secrets.items():
                    core.secrets.register(name, source)
                return command, attachment
            case _:
                return command, attachment

    def begin_run(self, command: Run, context: Context) -> LocalRun:
        core = self.core
        with suppress(Exception):  # a tool that can't be described: the step that needs it says so
            core.prompt.compose_nowait()
        command = command.model_copy(
            update={"attended": core.confirm is not None, "answers": core.on_question is not None}
        )
        decision = core.journal.hand_over(command, Attachment(context=context, tail=core.prompt.changed_nowait))
        core.last_run = decision
        return LocalRun(core, decision)

    async def interrupt(self, command: Interrupt) -> None:
        core, turn = self.core, self.core.turn
        if turn is not None and turn.run == command.run:
            # At once, and behind nothing; what follows only waits until that is recorded.
            turn.interrupt(command.reason, command=command.id, by=command.by)
        else:
            turn = None
        decision = core.journal.hand_over(command, Attachment(run=core.undecided_run))
        await core.journal.receipt_of(decision)
        turn = turn or decision.turn
        if isinstance(turn, Turn):
            await turn.done.wait()
            if turn.fatal and isinstance(turn.error, StoreError):
                core.journal.failure_reported = True
                raise turn.error

    async def interrupt_call(self, action_id: str) -> bool:
        call = self.core.calls.running(action_id)
        if call is not None:
            call.stop("it was cancelled", "cancelled")
        await checkpoint()
        return call is not None

    async def leave(self, waiter: str) -> None:
        core, turn = self.core, self.core.turn
        if turn is not None:
            turn.leave(waiter)
        await core.journal.receipt_of(core.journal.hand_over(Leave(waiter=waiter)))
        if turn is not None and not turn.waiters:
            await turn.done.wait()

    async def job(self, job: Job) -> JsonValue:
        core = self.core
        match job:
            case Ask():
                return await core.wait_for_job(ask_aside(core, job.question))
            case Fork():
                return await core.wait_for_job(fork(core, job.at, job.conversation))
            case Condense():
                cut = await core.wait_for_job(condense(core))
                return None if cut is None else cut.seq
            case Checkpoint():
                return (await core.wait_for_job(checkpoint_files(core))).seq
            case Delete():
                await delete(core)
                return None

    def deltas(self) -> DeltaCursor:
        self.core.check_loop()
        return self.core.deltas.subscribe()

    async def close(self) -> None:
        await close(self.core)


class LocalRun:
    """A run that was handed to the core. See `PendingRun`."""

    def __init__(self, core: Core, decision: Decision) -> None:
        self._core = core
        self._decision = decision

    async def recorded(self) -> Receipt:
        return await self._core.journal.receipt_of(self._decision)

    @property
    def result(self) -> RunResult | None:
        turn = self._decision.turn
        return turn.result if isinstance(turn, Turn) else turn

    async def wait(self) -> None:
        if isinstance(turn := self._decision.turn, Turn):
            await turn.done.wait()

    async def leave(self) -> None:
        # Before anything is awaited: a second cancellation of asyncio's own goes through the shield.
        decision = self._decision
        if isinstance(decision.turn, Turn):
            decision.turn.leave(decision.command.id)
        elif not decision.done.is_set():
            with suppress(ConversationClosed):
                self._core.journal.hand_over(Leave(waiter=decision.command.id))  # decided on right behind the run
        with anyio.CancelScope(shield=True):
            await decision.done.wait()
            if isinstance(turn := decision.turn, Turn):
                turn.leave(decision.command.id)
                if not turn.waiters:
                    await turn.done.wait()

    def outcome(self) -> RunResult:
        core, turn = self._core, self._decision.turn
        if isinstance(turn, RunResult):
            return turn
        assert turn is not None
        result = turn.result
        assert result is not None
        if turn.error is None:
            return result
        if not turn.fatal:
            shown = core.secrets.masker.mask_text(safe_str(turn.error))
            failed = RunError(f"The run failed with {type(turn.error).__name__}: {shown}", result, turn.error)
            # The stack of agentcore would bury the sentence that says what to do (a key is missing, no such provider).
            raise failed from None if isinstance(turn.error, AgentcoreError) else turn.error
        if not isinstance(turn.error, StoreError | ConversationClosed):
            raise ConversationClosed(core.state.conversation_id) from turn.error
        core.journal.failure_reported = core.journal.failure_reported or turn.error is core.life.failure
        raise turn.error
