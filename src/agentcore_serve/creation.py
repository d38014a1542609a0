"""How conversations of the server come to be: created by an id and a spec, or copied from another one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import anyio

from agentcore.commands import Fork
from agentcore.errors import AgentcoreError, ConversationNotFound
from agentcore.ids import check_conversation_id, new_conversation_id
from agentcore.logs import get_logger
from agentcore.wire.requests import ClientAgent, ConversationSpec
from agentcore_serve.agents import OwnAgent
from agentcore_serve.auth.identity import Identity
from agentcore_serve.open_conversations import OpenConversations
from agentcore_serve.opening import digest_of
from agentcore_serve.records import ConversationRecords, ConversationRow
from agentcore_serve.refused import Refused
from agentcore_serve.served import Served

_log = get_logger(__name__)


class Creation:
    """Creates conversations, their rows before their logs.

    Args:
        open_ones: Opens what was created.
        records: The rows.
        shared_user: True if several owners may work on this machine.
        wall: The time of day, in seconds.
    """

    def __init__(
        self,
        open_ones: OpenConversations,
        records: ConversationRecords,
        *,
        shared_user: bool,
        wall: Callable[[], float],
    ) -> None:
        self._open = open_ones
        self._records = records
        self._shared_user = shared_user
        self._wall = wall

    async def create_or_open(
        self,
        identity: Identity,
        spec: ConversationSpec,
        id: str | None = None,  # noqa: A002
        *,
        replace: bool = False,
        create: bool = True,
    ) -> tuple[Served, bool]:
        """Create a conversation, or open the one of the same id and spec; return whether it was created just now.

        Args:
            identity: Who asks.
            spec: What it is created with.
            id: Its id.
            replace: Open one of another spec with this one from now on, as a program that resumes it with another agent
                does; what the spec leaves out stays as it was.
            create: Create it where there is none. A program that follows one opens it again, and not one anew in its place.
        """
        self._open.refuse_draining()
        conversation_id = check_conversation_id(id or new_conversation_id())
        if isinstance(spec.agent, ClientAgent) and "agents" not in identity.scopes:
            raise Refused(403, "not_authorized", "An agent of your own needs a key with the scope 'agents'.")
        text, digest = digest_of(spec)
        async with self._open.locks.hold(conversation_id):
            row = await self._records.find(conversation_id)
            has_log = await self._open.has_log(conversation_id)
            if (row is not None and row.owner != identity.owner) or (row is None and has_log):
                raise ConversationNotFound(conversation_id, "this server")
            if not create and not has_log:
                raise ConversationNotFound(conversation_id, "this server")
            if row is not None and has_log and row.digest != digest:
                if not replace:
                    raise Refused(
                        409, "conversation_differs", "The id has a conversation that was opened with another spec."
                    )
                row = await self._replace_spec(row, spec, text, digest)
            is_new = row is None or not has_log
            if is_new:
                await self._open.make_room()  # before anything is made that a refusal would leave behind
                row = await self._add_row(identity, spec, conversation_id, text, digest, replaces=row is not None)
            assert row is not None
            try:
                await self._supply(row, spec)
                return await self._open.open(row), is_new
            except BaseException:
                if is_new:
                    with anyio.CancelScope(shield=True):
                        await self._undo(row, spec)
                raise

    async def _undo(self, row: ConversationRow, spec: ConversationSpec) -> None:
        """Forget a conversation that could not be begun: its row would count as its owner's until the next start."""
        try:
            if not await self._open.has_log(row.id):
                self._open.opening.forget(row.id)
                await self._records.delete(row.id)
                if spec.workspace is None and row.workspace is not None:
                    await self._open.opening.places.discard(row.workspace)
        except (AgentcoreError, sqlite3.Error) as error:  # the one that is being raised says more
            _log.warning("creation not undone", conversation=row.id, error=str(error))

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
        opening = self._open.opening
        await opening.check(spec)
        places = opening.places
        place = await places.choose(identity.owner, spec.workspace)
        added = False
        try:
            row = ConversationRow(
                id=conversation_id,
                owner=identity.owner,
                digest=digest,
                spec=text,
                profile=None if isinstance(spec.agent, ClientAgent) else opening.profile(spec.agent)[0],
                workspace=place.id,
                is_local=place.is_local,
                created=self._wall(),
            )
            if replaces:
                await self._records.delete(conversation_id)
            if await self._records.insert(row, shared_user=self._shared_user) is not None:
                raise Refused(
                    409,
                    "shared_user",
                    "Another owner works on this machine as the same user, so each could read the other's files. "
                    "Whoever runs this server can allow that with --shared-user.",
                )
            added = True
            return row
        finally:
            with anyio.CancelScope(shield=True):
                await places.release(place.id)
                if not added and spec.workspace is None:
                    await places.discard(place.id)

    async def _replace_spec(
        self, row: ConversationRow, spec: ConversationSpec, text: str, digest: str
    ) -> ConversationRow:
        """Have a conversation opened with another spec from now on; one that is open is closed, where it rests."""
        opening = self._open.opening
        if spec.agent is not None or row.profile is not None:
            await opening.check(spec)
        served = self._open.find(row.id)
        if served is not None and not served.is_at_rest:
            raise Refused(
                409,
                "conversation_differs",
                "The conversation works, and was opened with another agent, other settings or other parts that run in a "
                "client. Wait for it or interrupt it first, or open it with the same.",
            )
        if served is not None:
            await served.conversation.close()
            await served.ended.wait()
        workspace = row.workspace
        if spec.workspace is not None:
            place = await opening.places.choose(row.owner, spec.workspace)
            with anyio.CancelScope(shield=True):
                await opening.places.release(place.id)
            workspace = place.id
        profile = row.profile
        if spec.agent is not None:
            profile = None if isinstance(spec.agent, ClientAgent) else opening.profile(spec.agent)[0]
        row = row._replace(spec=text, digest=digest, profile=profile, workspace=workspace, is_made=False, is_open=False)
        await self._records.update(
            row.id, spec=text, digest=digest, profile=profile, workspace=workspace, is_made=False
        )
        return row

    async def _supply(self, row: ConversationRow, spec: ConversationSpec) -> None:
        """Keep a key and secrets in memory, and pass them to the conversation where that is open."""
        opening, secrets = self._open.opening, spec.secrets
        brought = spec.agent if isinstance(spec.agent, ClientAgent) and row.profile is None else None
        is_new_key = False
        if brought is not None and brought.model_key is not None:
            is_new_key = brought.model_key != opening.key_of(row.id, brought.record)
            opening.hold_key(row.id, brought.record, brought.model_key)
        opening.hold_secrets(row.id, secrets)
        served = self._open.find(row.id)
        if served is None:
            return
        if secrets:
            await served.conversation.add_secrets({name: value.get_secret_value() for name, value in secrets.items()})
        recorded = served.state.agent
        key = None if recorded is None else opening.key_of(row.id, recorded.agent)
        if is_new_key and recorded is not None and key is not None:
            agent = await opening.own_agent(OwnAgent(recorded.agent, key))
            await served.conversation.set_agent(served.parts.added_to(agent))

    async def fork(self, served: Served, fork: Fork) -> ConversationRow:
        """Copy a branch into a new conversation of the same owner, agent and workspace, and return its row.

        Raises:
            Refused: The new id has a conversation (409).
            RewindRefused: `at` is not a settled point.
        """
        new_id = check_conversation_id(fork.conversation)
        async with self._open.locks.hold(new_id):
            if await self._records.find(new_id) is not None or await self._open.has_log(new_id):
                raise Refused(409, "conversation_exists", "There is a conversation of that id already.")
            row = served.row._replace(
                id=new_id, created=self._wall(), is_made=True, is_open=False, restarts=0, last_reply=0
            )
            await self._records.insert(row, shared_user=True)  # the same owner, in the same place
            try:
                await served.conversation.link.job(fork)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    if not await self._open.has_log(new_id):
                        await self._records.delete(new_id)
                raise
            self._open.opening.hold_like(new_id, served.id)
        return row
