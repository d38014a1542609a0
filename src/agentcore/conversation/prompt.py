"""The system prompt, the tools and the context of the next request, composed again only when what they are made of may have changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

from anyio.to_thread import run_sync

from agentcore.agent import Agent
from agentcore.context import (
    ContextPart,
    Happened,
    InstructionsContext,
    ShownParts,
    digest_of_part,
    example_calls,
    system_prompt,
    write_instructions,
)
from agentcore.conversation.context import ContextReader
from agentcore.conversation.guards import mark_running_in
from agentcore.conversation.tools import ToolSessions
from agentcore.events import (
    ActionEvent,
    ContextAdded,
    ConversationStateUpdateEvent,
    Event,
    MessageEvent,
    SystemPromptEvent,
)
from agentcore.record import ConversationState
from agentcore.secrets import Masker, SecretRegistry
from agentcore.tools import Resource, ToolSnapshot
from agentcore.workspace import Workspace


class _Basis(NamedTuple):
    """The facts that the tools of a request depend on: where it is the same, toolsets are not read again."""

    last_user_seq: int
    view_epoch: int


class _Text(NamedTuple):
    """A prompt, and what it is made of."""

    prompt: str
    parts: dict[str, str]
    base: str | None

    @classmethod
    def of(cls, event: SystemPromptEvent) -> Self:
        return cls(event.prompt, event.parts, event.base)


class PromptSource:
    """Composes the prompt of one conversation, and appends the context that comes later.

    Tools are read after a message of the user, a cut and a rewind only; instructions are written and context sources are
    opened after the opening, a cut and a rewind: providers cache what comes first.
    """

    def __init__(
        self,
        agent: Agent,
        workspace: Workspace,
        secrets: SecretRegistry,
        sessions: ToolSessions,
        *,
        conversation_id: str,
        deps: Any = None,
    ) -> None:
        self._agent = agent
        self._workspace = workspace
        self._secrets = secrets
        self._sessions = sessions
        self._id = conversation_id
        self._deps = deps
        self._instructions = agent.instructions if isinstance(agent.instructions, str) else None
        self._reader = self._reader_for(agent)
        self._shown = ShownParts()
        self._touched: dict[str, tuple[str, ...]] = {}
        """The paths of files that the newest calls have touched, by the ids of their actions."""
        self._composed_at: int | None = None
        """The epoch of the view for which the instructions and the parts were read."""
        self._compose_anew = False
        """True from a cut, a rewind or a change of the agent on until the prompt was composed anew, so that all parts are in it."""
        self._parts_may_be_new = False
        """True from the opening of the sources on until all their parts are shown."""
        self._snapshot: ToolSnapshot | None = None
        self._basis: _Basis | None = None
        self._examples: tuple[ToolSnapshot, str | None] | None = None
        self._made_of: tuple[Masker, ToolSnapshot] | None = None
        self._made = _Text("", {}, None)
        self._digests: list[str] = []
        self._checked: SystemPromptEvent | None = None
        """The event in force, once it was found to say what is composed."""

    def set_agent(self, agent: Agent) -> None:
        """Compose it anew, for another agent."""
        self._agent = agent
        self._instructions = agent.instructions if isinstance(agent.instructions, str) else None
        self._reader = self._reader_for(agent)
        self._composed_at = self._snapshot = self._basis = self._examples = self._made_of = None
        self._compose_anew = True

    def touch(self, action_id: str, resources: Sequence[Resource]) -> None:
        """Note the files that a call has read or changed."""
        if self._reader is not None and (paths := tuple(path for each in resources if (path := each.file_path))):
            self._touched[action_id] = paths

    def compose_nowait(self) -> None:
        """Compose it, where that needs no waiting: where neither a toolset, a function nor a source has to be asked.

        Raises:
            SchemaError: One of the tools has no schema that models take.
        """
        if not self._has_to_wait:
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
            self._snapshot = await self._sessions.compose(state.prompt)
            self._basis = basis
        if self._composed_at != basis.view_epoch:
            await self._read_again(state)
            self._compose_anew = self._compose_anew or self._composed_at is not None
            self._composed_at = basis.view_epoch
        if self._agent.context is not None and self._agent.context.examples:
            await self._write_examples(self._snapshot)
        self._make_text(self._snapshot)
        changed = self.changed(state)
        events: list[Event] = [ConversationStateUpdateEvent(update=each) for each in self._sessions.take_notices()]
        if self._reader is None:
            return self._snapshot, [*events, *changed]
        events += [*self._notices_of(self._reader, state), *changed]
        added = await self._add_parts(self._reader, state, changed)
        return self._snapshot, [*events, *self._notices_of(self._reader, state), *added]

    @staticmethod
    def _notices_of(reader: ContextReader, state: ConversationState) -> Sequence[Event]:
        return [ConversationStateUpdateEvent(update=each) for each in reader.take_notices(state)]

    def changed_nowait(self, state: ConversationState) -> Sequence[Event]:
        """Return what `changed` does, where what is composed needs no waiting; else the step composes it.

        While calls are open nothing changes: they are read against the tools that the model saw when it made them.
        """
        return () if self._has_to_wait or state.open_actions else self.changed(state)

    def changed(self, state: ConversationState) -> Sequence[SystemPromptEvent]:
        """Return the event that puts in force what was composed; none where it is in force on the active branch."""
        in_force = state.prompt
        if self._made_of is None or (in_force is not None and in_force is self._checked):
            return ()
        made = self._made
        if in_force is not None:
            if not self._compose_anew and made.base is not None and made.base == in_force.base:
                # Only parts have changed since: these are appended, so that the provider's cache holds.
                masker = self._made_of[0]
                if masker.mask_text(in_force.prompt) == in_force.prompt:
                    made = made._replace(prompt=in_force.prompt, parts=in_force.parts)
            # By their digests: where a description holds a secret, the log has it masked.
            if made == _Text.of(in_force) and self._digests == [schema.digest for schema in in_force.tools]:
                self._checked = in_force
                self._compose_anew = False
                return ()
        return (SystemPromptEvent(**made._asdict(), tools=self._made_of[1].schemas),)

    @property
    def _has_to_wait(self) -> bool:
        context = self._agent.context
        return bool(
            self._agent.toolsets
            or callable(self._agent.instructions)
            or self._reader is not None
            or (context is not None and context.examples)
        )

    def _reader_for(self, agent: Agent) -> ContextReader | None:
        sources = () if agent.context is None else agent.context.all_sources
        return ContextReader(sources, self._workspace, self._secrets, self._id) if sources else None

    async def _read_again(self, state: ConversationState) -> None:
        """Write the instructions and open the sources, where they are to be asked."""
        if callable(self._agent.instructions):
            context = InstructionsContext(deps=self._deps, state=state, workspace=self._workspace)
            with mark_running_in(state.conversation_id):
                self._instructions = await write_instructions(self._agent.instructions, context)
            self._made_of = None
        if self._reader is not None:
            await self._reader.open(state.limits.step_seconds)
            self._parts_may_be_new = True
            self._made_of = None

    async def _write_examples(self, snapshot: ToolSnapshot) -> None:
        if self._examples is None or self._examples[0] is not snapshot:
            self._examples = snapshot, await run_sync(example_calls, snapshot.schemas)
            self._made_of = None

    def _make_text(self, snapshot: ToolSnapshot) -> None:
        masker = self._secrets.masker
        if self._made_of is not None and self._made_of[0] is masker and self._made_of[1] is snapshot:
            return
        self._digests = [schema.digest for schema in snapshot.schemas]
        agent, context = self._agent, self._agent.context
        parts = () if self._reader is None else self._reader.parts

        def text_with(parts: Sequence[ContextPart]) -> str:
            return masker.mask_text(
                system_prompt(
                    agent.system_prompt or (None if context is None else context.prompt),
                    self._instructions,
                    self._workspace.root,
                    snapshot.instructions,
                    mask=masker.mask_text,
                    deferred=snapshot.deferred,
                    examples=None if self._examples is None else self._examples[1],
                    parts=[part.text for part in parts if part.name != "date"],
                    date=next((part.text for part in parts if part.name == "date"), None),
                )
            )

        if context is None:
            self._made = _Text(text_with(()), {}, None)
        else:
            self._made = _Text(
                text_with(parts),
                {name: digest for name, _, digest in _masked(masker, parts)},
                digest_of_part(text_with(())),
            )
        self._made_of = masker, snapshot
        self._checked = None

    async def _add_parts(
        self, reader: ContextReader, state: ConversationState, changed: Sequence[SystemPromptEvent]
    ) -> Sequence[ContextAdded]:
        """Return what is to be shown after the history: parts that changed while nobody looked, and those for what happened."""
        messages, touched = self._new_since_reply(state)
        if not (messages or touched or self._parts_may_be_new):
            return ()
        shown = dict(self._shown.update(state))
        for event in changed:
            shown.update(event.parts)
        added: list[ContextAdded] = []
        masker = self._secrets.masker

        def show(parts: Sequence[ContextPart], cause: str | None) -> None:
            for name, text, digest in _masked(masker, parts):
                if shown.get(name) != digest:
                    shown[name] = digest
                    added.append(ContextAdded(name=name, text=text, digest=digest, cause=cause))

        if self._parts_may_be_new:
            show(reader.parts, None)
            self._parts_may_be_new = bool(added)
        if messages or touched:
            happened = Happened(
                messages=[message.text for message in messages],
                touched=list(dict.fromkeys(path for paths in touched.values() for path in paths)),
                shown=frozenset(shown),
            )
            cause = messages[-1].id if messages else next(reversed(touched))
            show(await reader.follow(happened, state.limits.step_seconds), cause)
        return added

    def _new_since_reply(self, state: ConversationState) -> tuple[list[MessageEvent], dict[str, tuple[str, ...]]]:
        """Return the user's messages that the newest reply has not seen, and the paths that its calls have touched."""
        messages: list[MessageEvent] = []
        touched: dict[str, tuple[str, ...]] = {}
        for event in reversed(state.shown):
            if event.seq <= state.view_seq:
                break
            if isinstance(event, MessageEvent) and event.source == "user":
                messages.insert(0, event)
            elif isinstance(event, ActionEvent) and event.id in self._touched:
                touched = {event.id: self._touched[event.id], **touched}
        self._touched = touched
        return messages, touched


def _masked(masker: Masker, parts: Sequence[ContextPart]) -> Iterator[tuple[str, str, str]]:
    for part in parts:
        text = masker.mask_text(part.text)
        yield masker.mask_text(part.name), text, digest_of_part(text)
