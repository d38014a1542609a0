"""The hub: all conversations of a server, opened when they are asked for, in one task group in the server's lifespan."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from pydantic import JsonValue, SecretStr

from agentcore.agent import Agent
from agentcore.commands import Fork
from agentcore.conversation import Host
from agentcore.conversation.exceptions import open_group
from agentcore.errors import (
    AgentcoreError,
    ConversationError,
    ConversationLocked,
    ConversationNotFound,
    LogReadOnly,
    ToolNotFound,
)
from agentcore.ids import check_conversation_id, new_conversation_id
from agentcore.logs import get_logger
from agentcore.record import FileStore, LogReader, Store
from agentcore.tools import allow_imports
from agentcore.wire.requests import ClientAgent, ConversationSpec
from agentcore_serve.agents import AgentProfile, OwnAgent, load_profiles
from agentcore_serve.auth.identity import Identity
from agentcore_serve.database import Database
from agentcore_serve.followed import Followed
from agentcore_serve.index import NOBODY, ConversationIndex, Page
from agentcore_serve.indexing import Indexing, read_listed
from agentcore_serve.locks import NamedLocks
from agentcore_serve.opening import MakeClientParts, Opening, digest_of
from agentcore_serve.places import FolderPlaces, Places
from agentcore_serve.records import SCHEMA, ConversationRecords, ConversationRow
from agentcore_serve.refused import Refused
from agentcore_serve.resting import choose_to_make_room
from agentcore_serve.served import Served
from agentcore_serve.settings import ServeSettings
from agentcore_serve.store_lock import hold_store
from agentcore_serve.too_busy import TooBusy
from agentcore_serve.upkeep import after_start, tidy_again_and_again

_log = get_logger(__name__)

_ADMITTED_SECONDS: Final = 5.0
"""How long a run that was admitted counts as one that works before its log says so."""


class OfAnotherProgram(Refused):
    """A conversation was made by another program in the same store: it can be watched here, by administrators."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(
            409,
            "of_another_program",
            f"Conversation {conversation_id!r} was not made by this server. It can be watched here; continue it where it "
            "was made.",
        )


class Hub(AsyncContextManagerMixin):
    """Opens, lists, closes and deletes conversations. `async with Hub(settings) as hub`, in the server's lifespan.

    Args:
        settings: The server's.
        agents: Agents of the program's own, by name; they go before those of `settings.agents`.
        store: Where logs are kept; by default files in `settings.store`. Databases of another store are in memory.
        places: Hands out workspaces; by default folders below `settings.root`.
        is_locked: True if the caller holds the lock of the store (`hold_store`).
        client_parts: Makes the parts of conversations that clients run.
        clock: Seconds, for how long conversations rest.
        wall: The time of day, in seconds.
    """

    def __init__(
        self,
        settings: ServeSettings,
        *,
        agents: Mapping[str, Agent] | None = None,
        store: Store | None = None,
        places: Places | None = None,
        is_locked: bool = False,
        client_parts: MakeClientParts | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.store: Store = FileStore(settings.store) if store is None else store
        self.profiles: dict[str, AgentProfile | None] = dict.fromkeys(agents or {})
        """The server's agents by name; a profile is None where the program passed the agent."""
        self.is_draining = False
        """True once the server is about to end: nothing new is opened or run."""
        self._agents = dict(agents or {})
        self._places: Places = places or FolderPlaces(settings.root, settings.workspaces)
        self._is_locked = is_locked
        self._client_parts = client_parts
        self.now, self.wall = clock, wall
        self._folder = Path(self.store.location) if isinstance(self.store, FileStore) else None
        self._database = Database(self._at("serve.sqlite"), SCHEMA, durable=True)
        self.records = ConversationRecords(self._database)
        self.index = ConversationIndex(self._at("index.sqlite"))
        self.indexing = Indexing(self.index, wall=wall)
        self._served: dict[str, Served] = {}
        self._followed: dict[str, Followed] = {}
        self._locks = NamedLocks()
        self._opening: Opening | None = None
        self._tasks: TaskGroup | None = None
        self._being_opened = 0
        self._admitted: dict[str, float] = {}
        """When a run was admitted that the log does not have yet, by the conversation's id."""
        self.streams: Any = None
        """The streams of the server, where it has some: `close_streams` ends them."""
        self.is_caught_up = anyio.Event()
        """Set when the index has all logs."""
        self.crashes_handled = anyio.Event()
        """Set when what a crash cut off works again, or stays paused."""

    def _at(self, name: str) -> Path | None:
        return None if self._folder is None else self._folder / name

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        async with AsyncExitStack() as stack:
            if self._folder is not None and not self._is_locked:
                lock = hold_store(self._folder)
                await run_sync(lock.__enter__)
                stack.callback(lock.__exit__, None, None, None)
            if self.settings.agents is not None:
                for name, (profile, agent) in (await run_sync(load_profiles, self.settings.agents)).items():
                    if name not in self._agents:
                        self._agents[name], self.profiles[name] = agent, profile
            for module in self.settings.allowed_modules:
                allow_imports(module)
            await self._database.open()
            stack.push_async_callback(self._database.close)
            await self.index.open()
            stack.push_async_callback(self.index.close)
            rows = await self.records.all()
            async with open_group() as self._tasks:
                async with Host() as host:
                    self._opening = Opening(
                        host,
                        self.store,
                        self._places,
                        self._agents,
                        model_addresses=self.settings.model_addresses,
                        client_parts=self._client_parts,
                    )
                    self._tasks.start_soon(after_start, self, rows, name="catch up")
                    self._tasks.start_soon(tidy_again_and_again, self, name="close what rests")
                    self._tasks.start_soon(self.indexing.keep, name="index")
                    try:
                        yield self
                    finally:
                        self.is_draining = True
                # Those that follow conversations end with them; the rest would go on forever.
                with anyio.CancelScope(shield=True):
                    for served in tuple(self._served.values()):
                        await served.ended.wait()
                    await self.indexing.flush()
                    await self.records.mark_all_closed()
                self._tasks.cancel_scope.cancel()

    # -- opening ------------------------------------------------------------------------------------------------------

    async def create(self, identity: Identity, spec: ConversationSpec, id: str | None = None) -> Served:  # noqa: A002
        """Create a conversation, or open the one that was created with the same id and spec.

        Raises:
            Refused: The spec is not possible (422); the id has another spec (409); another owner works here (409).
            ConversationNotFound: The id is another owner's.
            TooBusy: There is no room.
        """
        return (await self.create_or_open(identity, spec, id))[0]

    async def create_or_open(
        self,
        identity: Identity,
        spec: ConversationSpec,
        id: str | None = None,  # noqa: A002
    ) -> tuple[Served, bool]:
        """Do as `create`, and return whether it was created just now."""
        self._refuse_draining()
        conversation_id = check_conversation_id(id or new_conversation_id())
        if isinstance(spec.agent, ClientAgent) and "agents" not in identity.scopes:
            raise Refused(403, "not_authorized", "An agent of your own needs a key with the scope 'agents'.")
        text, digest = digest_of(spec)
        async with self._locks.hold(conversation_id):
            row = await self.records.find(conversation_id)
            has_log = await self._has_log(conversation_id)
            if (row is not None and row.owner != identity.owner) or (row is None and has_log):
                raise ConversationNotFound(conversation_id, "this server")
            if row is not None and has_log and row.digest != digest:
                raise Refused(
                    409, "conversation_differs", "The id has a conversation that was created with another spec."
                )
            is_new = row is None or not has_log
            if is_new:
                row = await self._add_row(identity, spec, conversation_id, text, digest, replaces=row is not None)
            assert row is not None
            key = spec.agent.model_key if isinstance(spec.agent, ClientAgent) else None
            await self._supply(row, key, spec.secrets)
            return await self._open(row), is_new

    async def _add_row(
        self,
        identity: Identity,
        spec: ConversationSpec,
        conversation_id: str,
        text: str,
        digest: str,
        *,
        replaces: bool,
    ) -> ConversationRow:
        opening = self._ready()
        await opening.check(spec)
        place = await self._places.choose(identity.owner, spec.workspace)
        try:
            row = ConversationRow(
                id=conversation_id,
                owner=identity.owner,
                digest=digest,
                spec=text,
                profile=None if isinstance(spec.agent, ClientAgent) else opening.profile(spec.agent)[0],
                workspace=place.id,
                is_local=place.is_local,
                created=self.wall(),
            )
            if replaces:
                await self.records.delete(conversation_id)
            if await self.records.insert(row, shared_user=self.settings.shared_user) is not None:
                raise Refused(
                    409,
                    "shared_user",
                    "Another owner works on this machine as the same user, so each could read the other's files. "
                    "Whoever runs this server can allow that with --shared-user.",
                )
            return row
        finally:
            await self._places.release(place.id)

    async def _supply(self, row: ConversationRow, key: SecretStr | None, secrets: Mapping[str, SecretStr]) -> None:
        """Keep a key and secrets in memory, and pass them to the conversation where that is open."""
        opening = self._ready()
        opening.hold(row.id, key=key if row.profile is None else None, secrets=secrets)
        served = self._find(row.id)
        if served is None:
            return
        if secrets:
            await served.conversation.add_secrets({name: value.get_secret_value() for name, value in secrets.items()})
        recorded = served.state.agent
        if key is not None and row.profile is None and recorded is not None:
            await served.conversation.set_agent(await opening.own_agent(OwnAgent(recorded.agent, key)))

    async def open(self, identity: Identity, id: str) -> Served:  # noqa: A002
        """Return an open conversation, opened now where it was not. It counts as used.

        Raises:
            ConversationNotFound: There is none, or it is another owner's.
            ConversationLocked: Another process holds it; `watch` follows it.
            TooBusy: There is no room (503).
        """
        served = self._find(id)
        if served is not None:
            if served.owner != identity.owner:
                raise ConversationNotFound(id, "this server")
            served.touch()
            return served
        row = await self._owned_row(identity, id)
        async with self._locks.hold(id):
            return await self._open(row)

    async def watch(self, identity: Identity, id: str) -> Served | Followed:  # noqa: A002
        """Return a conversation to read: open, or, where it can't be opened here, its log, read on while it is followed.

        Raises:
            ConversationNotFound: There is none, or it is another owner's.
            StoreError: The log can't be read.
        """
        try:
            return await self.open(identity, id)
        except (ConversationLocked, LogReadOnly, ConversationError, ToolNotFound, OfAnotherProgram, TooBusy) as error:
            problem = None if isinstance(error, ConversationLocked | TooBusy) else str(error)
        async with self._locks.hold(id):
            followed = self._followed.get(id)
            if followed is None or followed.head_signal.closed:
                row = await self.records.find(id)
                holder = await self.store.holder(id)
                followed = Followed(id, row, await LogReader.open(self.store, id), holder, problem)
                await followed.read_on()
                self._followed[id] = followed
                assert self._tasks is not None
                self._tasks.start_soon(self._follow, followed, name="follow a log")
            return followed

    async def _follow(self, followed: Followed) -> None:
        seconds = self.settings.limits.follow_seconds
        idle = self.now()

        async def is_over() -> bool:
            nonlocal idle
            if followed.watchers:
                idle = self.now()
            # One that was held elsewhere, and is not any more, is opened here when it is asked for again.
            is_free = followed.holder is not None and await self.store.holder(followed.id) is None
            return is_free or self.now() - idle > self.settings.limits.idle_seconds

        try:
            await followed.follow(lambda: anyio.sleep(seconds), is_over)
        finally:
            if self._followed.get(followed.id) is followed:
                del self._followed[followed.id]

    async def _open(self, row: ConversationRow) -> Served:
        """Open a conversation whose lock is held."""
        self._refuse_draining()
        if (served := self._served.get(row.id)) is not None:
            if self._find(row.id) is not None:
                served.touch()
                return served
            await served.ended.wait()
        await self._make_room()
        self._being_opened += 1
        try:
            return await self._open_now(row)
        finally:
            self._being_opened -= 1

    async def _open_now(self, row: ConversationRow) -> Served:
        opening = self._ready()
        assert row.workspace is not None
        place = await self._places.get(row.owner, row.workspace)
        try:
            if not row.is_open:
                await self.records.update(row.id, is_open=True)
            conversation, asks = await opening.open(row, place)
            if not row.is_made:
                await self.records.update(row.id, is_made=True)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._places.release(place.id)
            raise
        served = Served(row._replace(is_made=True, is_open=True), conversation, self.now)
        served.asks = asks
        self._served[row.id] = served
        self.indexing.note(served)
        assert self._tasks is not None
        self._tasks.start_soon(self._attend, served, place.id, name="attend a conversation")
        return served

    async def _attend(self, served: Served, place_id: str) -> None:
        """Note what happens in a conversation, and its end."""
        try:
            async for _ in served.conversation.events(after=served.state.head):
                served.touch()
                self._admitted.pop(served.id, None)
                self.indexing.note(served)
        finally:
            if self._served.get(served.id) is served:
                del self._served[served.id]
            self.indexing.note(served)
            with anyio.CancelScope(shield=True):
                try:
                    await self._places.release(place_id)
                    if not self.is_draining:  # then all are marked together, once the logs say that they rest
                        await self.records.update(served.id, is_open=False)
                except (sqlite3.Error, AgentcoreError) as error:
                    _log.error("closing not recorded", conversation=served.id, error=str(error))
                served.ended.set()

    def _find(self, conversation_id: str) -> Served | None:
        served = self._served.get(conversation_id)
        if served is None or self._ready().host.get(conversation_id, self.store) is not served.conversation:
            return None
        return served

    async def _owned_row(self, identity: Identity, conversation_id: str) -> ConversationRow:
        check_conversation_id(conversation_id)
        row = await self.records.find(conversation_id)
        if row is None and "admin" in identity.scopes and await self._has_log(conversation_id):
            raise OfAnotherProgram(conversation_id)
        if row is None or row.owner != identity.owner:
            raise ConversationNotFound(conversation_id, "this server")
        return row

    async def _has_log(self, conversation_id: str) -> bool:
        try:
            await self.store.holder(conversation_id)
        except ConversationNotFound:
            return False
        return True

    def _ready(self) -> Opening:
        if self._opening is None:
            raise ConversationError("The hub is not open: use `async with Hub(settings) as hub`.")
        return self._opening

    def _refuse_draining(self) -> None:
        if self.is_draining:
            raise Refused(503, "draining", "The server is about to end. Try again in a moment.", retry_after=1)

    # -- room ---------------------------------------------------------------------------------------------------------

    @property
    def served(self) -> Collection[Served]:
        """The conversations that are open."""
        return tuple(self._served.values())

    @property
    def running_count(self) -> int:
        """How many work, or are about to."""
        now = self.now()
        about_to = {name for name, when in self._admitted.items() if now - when < _ADMITTED_SECONDS}
        return len(about_to | {served.id for served in self._served.values() if not served.is_at_rest})

    def is_open(self, conversation_id: str) -> bool:
        """Return whether a conversation is open here."""
        return conversation_id in self._served

    def holds_sessions(self, conversation_id: str) -> bool:
        """Return whether a tool or a toolset is open in a conversation."""
        return self._ready().host.holds_sessions(conversation_id, self.store)

    def admit_run(self, served: Served) -> None:
        """Let a conversation work, to be called right before what begins it: a run, an approval, an answer.

        Raises:
            TooBusy: As many work as may (429).
            Refused: The server is about to end (503).
        """
        self._refuse_draining()
        if not served.is_at_rest:
            return
        if served.id not in self._admitted and self.running_count >= self.settings.limits.running_conversations:
            raise TooBusy(429, "As many conversations work as may at once. Try again in a moment.", retry_after=5)
        self._admitted[served.id] = self.now()

    async def wait_for_room_to_run(self) -> None:
        """Wait until one more conversation may work."""
        while self.running_count >= self.settings.limits.running_conversations:
            await anyio.sleep(1)

    async def _make_room(self) -> None:
        while len(self._served) + self._being_opened >= self.settings.limits.open_conversations:
            chosen = choose_to_make_room(self._served.values(), self.holds_sessions, self.now())
            if chosen is None:
                raise TooBusy(503, "As many conversations are open as may be. Try again in a moment.", retry_after=5)
            await chosen.conversation.close()
            await chosen.ended.wait()

    # -- agents -------------------------------------------------------------------------------------------------------

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The server's agents by name, the default first."""
        return self._agents

    async def agent(self, name: str | None) -> Agent:
        """Return an agent of the server's, to set it in a conversation; then call `agent_was_set`.

        Raises:
            Refused: There is none of that name (422).
        """
        return self._ready().profile(name)[1]

    async def agent_was_set(self, served: Served, profile: str) -> None:
        """Note that an agent of the server's works in a conversation from now on: it is opened with it again."""
        await self.records.update(served.id, profile=profile)
        self._ready().forget(served.id, key_only=True)
        served.row = served.row._replace(profile=profile)

    async def own_agent(
        self, served: Served, record: Mapping[str, JsonValue], model_key: SecretStr | None = None
    ) -> Agent:
        """Make a client's agent, to set it in a conversation: from now on that is not opened with a key of the server's.

        Raises:
            Refused: It names what is not allowed (422).
        """
        opening = self._ready()
        agent = await opening.own_agent(OwnAgent(record, model_key))
        # Before it is set: between the two, the server's own agent works without the server's key at worst.
        await self.records.update(served.id, profile=None)
        opening.hold(served.id, key=model_key)
        served.row = served.row._replace(profile=None)
        return agent

    def hold_secrets(self, served: Served, secrets: Mapping[str, SecretStr]) -> None:
        """Keep secrets that were added in memory, for when the conversation is closed and opened again."""
        self._ready().hold(served.id, secrets=secrets)

    # -- the list -----------------------------------------------------------------------------------------------------

    async def list(
        self,
        identity: Identity,
        *,
        cursor: str | None = None,
        limit: int = 50,
        status: str | None = None,
        tag: str | None = None,
        text: str | None = None,
    ) -> Page:
        """Return a page of an owner's conversations, the newest first. Administrators see those of other programs, too.

        Raises:
            Refused: The cursor is not one (422).
        """
        await self.indexing.flush()
        owners = [identity.owner, *([NOBODY] if "admin" in identity.scopes else [])]
        return await self.index.page(owners, cursor=cursor, limit=limit, status=status, tag=tag, text=text)

    # -- ends ---------------------------------------------------------------------------------------------------------

    async def fork(self, identity: Identity, served: Served, fork: Fork) -> str:
        """Copy a branch into a new conversation of the same owner, agent and workspace, and return its id.

        Raises:
            ConversationNotFound: It is another owner's.
            Refused: The new id has a conversation (409).
            RewindRefused: `at` is not a settled point.
        """
        if served.owner != identity.owner:
            raise ConversationNotFound(served.id, "this server")
        new_id = check_conversation_id(fork.conversation)
        async with self._locks.hold(new_id):
            if await self.records.find(new_id) is not None or await self._has_log(new_id):
                raise Refused(409, "conversation_exists", "There is a conversation of that id already.")
            row = served.row._replace(
                id=new_id, created=self.wall(), is_made=True, is_open=False, restarts=0, last_reply=0
            )
            await self.records.insert(row, shared_user=True)  # the same owner, in the same place
            try:
                await served.conversation.link.job(fork)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    if not await self._has_log(new_id):
                        await self.records.delete(new_id)
                raise
            self._ready().hold_like(new_id, served.id)
        for info in await self.store.list(limit=1):
            listed = await read_listed(self.store, info, {new_id: row})
            if info.conversation_id == new_id and listed is not None:
                await self.index.put([listed])
        return new_id

    async def delete(self, identity: Identity, id: str) -> None:  # noqa: A002
        """Delete a conversation: its log, its outputs, and what the server knows of it.

        Raises:
            ConversationNotFound: There is none, or it is another owner's.
            ConversationLocked: Another process holds it.
        """
        await self.delete_row(await self._owned_row(identity, id))

    async def delete_row(self, row: ConversationRow) -> None:
        """Delete a conversation by its row."""
        async with self._locks.hold(row.id):
            served = self._served.get(row.id)
            found = True
            try:
                await self._ready().host.delete(row.id, self.store)
            except ConversationNotFound:
                found = False  # a deletion that was cut off: what is left of it goes now
            if served is not None:
                await served.ended.wait()
            await self._forget(row.id)
        if not found:
            raise ConversationNotFound(row.id, "this server")

    async def forget_if_gone(self, conversation_id: str) -> None:
        """Forget a conversation that has no log."""
        async with self._locks.hold(conversation_id):
            if not self.is_open(conversation_id) and not await self._has_log(conversation_id):
                await self._forget(conversation_id)

    async def _forget(self, conversation_id: str) -> None:
        self._ready().forget(conversation_id)
        self.indexing.forget(conversation_id)
        await self.records.delete(conversation_id)
        await self.index.remove(conversation_id)

    async def open_row(self, row: ConversationRow) -> Served:
        """Open a conversation by its row."""
        async with self._locks.hold(row.id):
            return await self._open(row)

    async def close_streams(self, code: str = "draining") -> None:
        """Say `bye` to all who watch, and take nothing new."""
        self.is_draining = True
        if self.streams is not None:
            await self.streams.bye_all(code)

    async def drain(self, seconds: float | None = None) -> None:
        """Take nothing new, and bring all conversations to rest: see `Host.drain`."""
        self.is_draining = True
        await self._ready().host.drain(self.settings.limits.drain_seconds if seconds is None else seconds)


@asynccontextmanager
async def open_hub(
    settings: ServeSettings, *, agents: Mapping[str, Agent] | None = None, store: Store | None = None
) -> AsyncGenerator[Hub]:
    """Open the hub of a server for as long as the block lasts.

    Raises:
        StoreInUse: Another server works on the store.
        ProfileError: The file of agents has a fault.
    """
    async with Hub(settings, agents=agents, store=store) as hub:
        yield hub
