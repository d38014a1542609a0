"""The hub: all conversations of a server, opened when they are asked for, in one task group in the server's lifespan."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

import anyio
from anyio import AsyncContextManagerMixin
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
    StoreError,
)
from agentcore.ids import check_conversation_id
from agentcore.logs import get_logger
from agentcore.record import FileStore, Store
from agentcore.tools import allow_imports
from agentcore.usage import Usage
from agentcore.wire.requests import ConversationSpec
from agentcore_serve.agents import AgentProfile, AllowedParts, OwnAgent, load_profiles
from agentcore_serve.auth.identity import Identity
from agentcore_serve.crashes import CutOff
from agentcore_serve.creation import Creation
from agentcore_serve.database import Database
from agentcore_serve.deletion import Deletion
from agentcore_serve.followed import Followed, Followers
from agentcore_serve.index import NOBODY, ConversationIndex, Page
from agentcore_serve.indexing import Indexing, read_listed
from agentcore_serve.open_conversations import OpenConversations
from agentcore_serve.opening import MakeClientParts, Opening
from agentcore_serve.places import Places
from agentcore_serve.records import SCHEMA, ConversationRecords, ConversationRow
from agentcore_serve.refused import OfAnotherProgram, Refused, TooBusy
from agentcore_serve.served import Served
from agentcore_serve.settings import ServeSettings
from agentcore_serve.store_lock import hold_store
from agentcore_serve.upkeep import after_start, tidy_again_and_again

_log = get_logger(__name__)


class Hub(AsyncContextManagerMixin):
    """Opens, lists, closes and deletes conversations. `async with Hub(settings, places) as hub`, in the server's lifespan.

    Args:
        settings: The server's.
        places: Hands out workspaces.
        agents: Agents of the program's own, by name; they go before those of `settings.agents`.
        store: Where logs are kept; by default files in `settings.store`. Databases of another store are in memory.
        is_locked: True if the caller holds the lock of the store (`hold_store`).
        client_parts: Makes the parts of conversations that clients run.
        count_usage: Told what each model call used.
        clock: Seconds, for how long conversations rest.
        wall: The time of day, in seconds.
    """

    def __init__(
        self,
        settings: ServeSettings,
        places: Places,
        *,
        agents: Mapping[str, Agent] | None = None,
        store: Store | None = None,
        is_locked: bool = False,
        client_parts: MakeClientParts | None = None,
        count_usage: Callable[[Usage], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.store: Store = FileStore(settings.store) if store is None else store
        self.profiles: dict[str, AgentProfile | None] = dict.fromkeys(agents or {})
        """The server's agents by name; a profile is None where the program passed the agent."""
        self.allowed_parts = AllowedParts(settings.allowed_modules, settings.allowed_parts)
        """The parts that clients' own agents may have."""
        self._agents = dict(agents or {})
        self._places = places
        self._is_locked = is_locked
        self._client_parts = client_parts
        self._count_usage = count_usage
        self.now, self.wall = clock, wall
        self._folder = Path(self.store.location) if isinstance(self.store, FileStore) else None
        self._database = Database(self._at("serve.sqlite"), SCHEMA, durable=True)
        self.records = ConversationRecords(self._database)
        self.index = ConversationIndex(self._at("index.sqlite"))
        self.indexing = Indexing(self.index, wall=wall)
        self._open_ones: OpenConversations | None = None
        self._followers: Followers | None = None
        self.cut_off: CutOff
        """The conversations that worked when the server ended, and are still to go on; there while the hub is open."""
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
            async with open_group() as tasks:
                async with Host() as host:
                    opening = Opening(
                        host,
                        self.store,
                        self._places,
                        self._agents,
                        model_addresses=self.settings.model_addresses,
                        parts=self.allowed_parts,
                        client_parts=self._client_parts,
                    )
                    limits = self.settings.limits
                    self._open_ones = OpenConversations(
                        opening,
                        self.records,
                        self.indexing,
                        limits=limits,
                        tasks=tasks,
                        clock=self.now,
                        count_usage=self._count_usage,
                    )
                    self._followers = Followers(self.store, limits, tasks, self.now)
                    self.cut_off = CutOff(
                        rows,
                        self.records,
                        self._open_ones.open_row,
                        self._open_ones.wait_for_room_to_run,
                        limits.restarts if self.settings.after_crash == "continue" else 0,
                    )
                    tasks.start_soon(after_start, self, rows, name="catch up")
                    tasks.start_soon(tidy_again_and_again, self, name="close what rests")
                    tasks.start_soon(self.indexing.keep, name="index")
                    try:
                        yield self
                    finally:
                        self._open_ones.is_draining = True
                # Those that attend conversations end with them; the rest would go on forever.
                with anyio.CancelScope(shield=True):
                    await self._end(self._open_ones)
                tasks.cancel_scope.cancel()

    async def _end(self, open_ones: OpenConversations) -> None:
        for served in open_ones.served:
            await served.ended.wait()
        try:
            await self.records.mark_closed(but=[*self.cut_off.waiting, *open_ones.cut_off])
            await self.indexing.flush()
        except sqlite3.Error as error:
            _log.error("end not recorded", error=str(error))

    @property
    def _creation(self) -> Creation:
        return Creation(self.open_ones, self.records, shared_user=self.settings.shared_user, wall=self.wall)

    @property
    def deletion(self) -> Deletion:
        """Deletes conversations, whoever's they are."""
        return Deletion(self.open_ones, self.records, self.index, self.indexing)

    @property
    def open_ones(self) -> OpenConversations:
        """The conversations that are open.

        Raises:
            ConversationError: The hub is not open.
        """
        if self._open_ones is None:
            raise ConversationError("The hub is not open: use `async with Hub(settings, places) as hub`.")
        return self._open_ones

    @property
    def is_draining(self) -> bool:
        """True once the server is about to end: nothing new is opened or run."""
        return self.open_ones.is_draining

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
        *,
        replace: bool = False,
        create: bool = True,
    ) -> tuple[Served, bool]:
        """Do as `create`, and return whether it was created just now: see `Creation.create_or_open`."""
        served, is_new = await self._creation.create_or_open(identity, spec, id, replace=replace, create=create)
        # Before the answer: from it on, whoever waits for a run takes a conversation that rests for one that stays so.
        if self.open_ones.opening.has_key(served.row, served.state.agent):
            await self.cut_off.continue_one(served.id)
        return served, is_new

    async def open(self, identity: Identity, id: str) -> Served:  # noqa: A002
        """Return an open conversation, opened now where it was not. It counts as used.

        Raises:
            ConversationNotFound: There is none, or it is another owner's.
            ConversationLocked: Another process holds it; `watch` follows it.
            TooBusy: There is no room (503).
        """
        served = self.open_ones.find(id)
        if served is not None:
            if served.owner != identity.owner:
                raise ConversationNotFound(id, "this server")
            served.touch()
            return served
        async with self.open_ones.locks.hold(id):
            return await self.open_ones.open(await self._owned_row(identity, id))

    async def watch(self, identity: Identity, id: str) -> Served | Followed:  # noqa: A002
        """Return a conversation to read: open, or, where it can't be opened here, its log, read on while it is followed.

        Raises:
            ConversationNotFound: There is none, or it is another owner's.
            StoreError: The log can't be read.
        """
        try:
            return await self.open(identity, id)
        except ConversationNotFound:
            raise
        except (AgentcoreError, Refused) as error:
            if self.is_draining or self._followers is None:
                raise
            problem = None if isinstance(error, ConversationLocked | TooBusy) else str(error)
        async with self.open_ones.locks.hold(id):
            return await self._followers.follow(id, await self.records.find(id), problem)

    async def _owned_row(self, identity: Identity, conversation_id: str) -> ConversationRow:
        check_conversation_id(conversation_id)
        row = await self.records.find(conversation_id)
        if row is None and "admin" in identity.scopes and await self.open_ones.has_log(conversation_id):
            raise OfAnotherProgram(conversation_id)
        if row is None or row.owner != identity.owner:
            raise ConversationNotFound(conversation_id, "this server")
        return row

    def admit_run(self, served: Served) -> None:
        """Let a conversation work, to be called right before what begins it: a run, an approval, an answer.

        Raises:
            TooBusy: As many work as may (429).
            Refused: The server is about to end (503).
        """
        self.open_ones.admit_run(served)

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The server's agents by name, the default first."""
        return self._agents

    async def agent(self, name: str | None) -> Agent:
        """Return an agent of the server's, to set it in a conversation; then call `agent_was_set`.

        Raises:
            Refused: There is none of that name (422).
        """
        return self.open_ones.opening.profile(name)[1]

    async def agent_was_set(self, served: Served, profile: str) -> None:
        """Note that an agent of the server's works in a conversation from now on: it is opened with it again."""
        await self.records.update(served.id, profile=profile)
        self.open_ones.opening.forget(served.id, key_only=True)
        served.row = served.row._replace(profile=profile)

    async def own_agent(
        self, served: Served, record: Mapping[str, JsonValue], model_key: SecretStr | None = None
    ) -> Agent:
        """Make a client's agent, to set it in a conversation: from now on that is not opened with a key of the server's.

        Raises:
            Refused: It names what is not allowed (422).
        """
        opening = self.open_ones.opening
        agent = await opening.own_agent(OwnAgent(record, model_key))
        # Before it is set: between the two, the server's own agent works without the server's key at worst.
        await self.records.update(served.id, profile=None)
        if model_key is not None:
            opening.hold_key(served.id, record, model_key)
        served.row = served.row._replace(profile=None)
        return served.parts.added_to(agent)

    def hold_secrets(self, served: Served, secrets: Mapping[str, SecretStr]) -> None:
        """Keep secrets that were added in memory, for when the conversation is closed and opened again."""
        self.open_ones.opening.hold_secrets(served.id, secrets)

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

    async def fork(self, identity: Identity, served: Served, fork: Fork) -> str:
        """Copy a branch into a new conversation of the same owner, agent and workspace, and return its id.

        Raises:
            ConversationNotFound: It is another owner's.
            Refused: The new id has a conversation (409).
            RewindRefused: `at` is not a settled point.
        """
        if served.owner != identity.owner:
            raise ConversationNotFound(served.id, "this server")
        row = await self._creation.fork(served, fork)
        try:
            for info in await self.store.list(limit=1):
                listed = await read_listed(self.store, info, {row.id: row})
                if info.conversation_id == row.id and listed is not None:
                    await self.index.put([listed])
        except (sqlite3.Error, StoreError) as error:  # the copy is there, listed or not
            _log.error("index not written", conversation=row.id, error=str(error))
        return row.id

    async def delete(self, identity: Identity, id: str) -> None:  # noqa: A002
        """Delete a conversation: its log, its outputs, and what the server knows of it.

        Raises:
            ConversationNotFound: There is none, or it is another owner's.
            ConversationLocked: Another process holds it.
        """
        await self.deletion.delete(await self._owned_row(identity, id))

    async def close_streams(self, code: str = "draining") -> None:
        """Send `bye` to all who watch, and take nothing new."""
        self.open_ones.is_draining = True
        if self.streams is not None:
            await self.streams.bye_all(code)

    async def drain(self, seconds: float | None = None) -> None:
        """Take nothing new, and bring all conversations to rest: see `Host.drain`."""
        self.open_ones.is_draining = True
        await self.open_ones.opening.host.drain(self.settings.limits.drain_seconds if seconds is None else seconds)
