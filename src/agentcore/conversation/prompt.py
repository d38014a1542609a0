"""The system prompt and the tools of the next request, composed again only when what they are made of may have changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from agentcore.agent import Agent
from agentcore.context import InstructionsContext, system_prompt, write_instructions
from agentcore.conversation.guards import mark_running_in
from agentcore.conversation.tools import ToolSessions
from agentcore.events import ConversationStateUpdateEvent, Event, SystemPromptEvent
from agentcore.record import ConversationState
from agentcore.secrets import Masker, SecretRegistry
from agentcore.tools import ToolSnapshot
from agentcore.workspace import Workspace


class _Basis(NamedTuple):
    """The facts that the tools of a request depend on: where it is the same, toolsets are not read again."""

    last_user_seq: int
    view_epoch: int


class PromptSource:
    """Composes the prompt of one conversation.

    Tools are read after a message of the user, a cut and a rewind only, and instructions are written after the opening, a
    cut and a rewind: providers cache what comes first.
    """

    def __init__(
        self, agent: Agent, workspace: Workspace, secrets: SecretRegistry, sessions: ToolSessions, *, deps: Any = None
    ) -> None:
        self._agent = agent
        self._workspace = workspace
        self._secrets = secrets
        self._sessions = sessions
        self._deps = deps
        self._instructions = agent.instructions if isinstance(agent.instructions, str) else None
        self._written_at: int | None = None
        self._snapshot: ToolSnapshot | None = None
        self._basis: _Basis | None = None
        self._made_of: tuple[Masker, ToolSnapshot] | None = None
        self._text = ""
        self._digests: list[str] = []
        self._checked: SystemPromptEvent | None = None
        """The event that says what is composed, once one in force was found to."""

    def compose_nowait(self) -> None:
        """Compose it, where that needs no waiting: where neither a toolset nor a function has to be asked.

        Raises:
            SchemaError: One of the tools has no schema that models take.
        """
        if not self._agent.toolsets and not callable(self._agent.instructions):
            self._snapshot = self._snapshot or ToolSnapshot(self._agent.own_tools)
            self._make_text(self._snapshot)

    async def compose(self, state: ConversationState) -> tuple[ToolSnapshot, Sequence[Event]]:
        """Return the tools of the next request, and the events that are to be kept before it is made.

        Raises:
            SchemaError: One of the tools has no schema that models take.
            ToolNameTaken: A toolset that was just opened has a tool of the name of another one.
        """
        basis = _Basis(state.last_user_seq, state.view_epoch)
        if self._snapshot is None or self._basis is None or (self._agent.toolsets and self._basis != basis):
            self._snapshot = await self._sessions.compose()
            self._basis = basis
        if callable(self._agent.instructions) and self._written_at != basis.view_epoch:
            await self._write_instructions(state)
            self._written_at = basis.view_epoch
        self._make_text(self._snapshot)
        notices = [ConversationStateUpdateEvent(update=notice) for notice in self._sessions.take_notices()]
        return self._snapshot, [*notices, *self.changed(state)]

    def changed(self, state: ConversationState) -> Sequence[Event]:
        """Return the event that puts in force what was composed; none where it is in force on the active branch."""
        in_force = state.prompt
        if self._made_of is None or (in_force is not None and in_force is self._checked):
            return ()
        # By their digests: where a description holds a secret, the log has it masked.
        digests = [] if in_force is None else [schema.digest for schema in in_force.tools]
        if in_force is not None and (in_force.prompt, digests) == (self._text, self._digests):
            self._checked = in_force
            return ()
        return (SystemPromptEvent(prompt=self._text, tools=self._made_of[1].schemas),)

    async def _write_instructions(self, state: ConversationState) -> None:
        context = InstructionsContext(deps=self._deps, state=state, workspace=self._workspace)
        with mark_running_in(state.conversation_id):
            self._instructions = await write_instructions(self._agent.instructions, context)
        self._made_of = None

    def _make_text(self, snapshot: ToolSnapshot) -> None:
        masker = self._secrets.masker
        if self._made_of is not None and self._made_of[0] is masker and self._made_of[1] is snapshot:
            return
        self._digests = [schema.digest for schema in snapshot.schemas]
        agent = self._agent
        self._text = masker.mask_text(
            system_prompt(
                agent.system_prompt,
                self._instructions,
                self._workspace.root,
                snapshot.instructions,
                mask=masker.mask_text,
            )
        )
        self._made_of = masker, snapshot
        self._checked = None
