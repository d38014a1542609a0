"""How a conversation of the server's is opened: with which agent, where, and with which secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import anyio
from pydantic import JsonValue, SecretStr, ValidationError

from agentcore.agent import Agent
from agentcore.conversation import Conversation, Host, OnQuestion
from agentcore.errors import AgentcoreError, ConversationNotFound, NotRecorded
from agentcore.events import AgentConfigured
from agentcore.record import Store, read_log
from agentcore.secrets import SecretRegistry, SecretSource
from agentcore.security import Confirm, read_checks
from agentcore.tools import AnyTool
from agentcore.wire.requests import ClientAgent, ConversationSpec
from agentcore_serve.agents import DEFAULT_PARTS, AllowedParts, OwnAgent, restore_own_agent
from agentcore_serve.places import Place, Places
from agentcore_serve.records import ConversationRow
from agentcore_serve.refused import Refused


class ClientParts(NamedTuple):
    """The parts of a conversation that its clients run, as the conversation takes them."""

    tools: Sequence[AnyTool] = ()
    secrets: Mapping[str, SecretSource] = {}
    confirm: Confirm | None = None
    on_question: OnQuestion | None = None
    asks: Any = None
    """The object that clients attach to."""

    def added_to(self, agent: Agent) -> Agent:
        """Return an agent with the tools that clients run, in place of its own of the same names."""
        if not self.tools:
            return agent
        names = {tool.name for tool in self.tools}
        own = [each for each in agent.tools if getattr(each, "name", None) not in names]
        return replace(agent, tools=(*own, *self.tools))


MakeClientParts = Callable[[str, ConversationSpec], ClientParts]
"""Makes the parts of the conversation of this id."""

_CLOSE_SECONDS: Final = 30.0


class Opening:
    """Opens conversations, and holds what is in memory only: keys of clients' models, and secrets.

    Args:
        host: Holds the conversations.
        store: Where their logs are.
        places: Where they work.
        profiles: The server's agents by name, the default first.
        model_addresses: Private addresses that clients' models may be at.
        parts: The parts that clients' agents may have.
        client_parts: Makes the parts that clients run.
    """

    def __init__(
        self,
        host: Host,
        store: Store,
        places: Places,
        profiles: Mapping[str, Agent],
        *,
        model_addresses: Sequence[str] = (),
        parts: AllowedParts = DEFAULT_PARTS,
        client_parts: MakeClientParts | None = None,
    ) -> None:
        self.host = host
        self.store = store
        self.places = places
        self.profiles = profiles
        self._model_addresses = model_addresses
        self._parts = parts
        self._client_parts = client_parts
        self._keys: dict[str, dict[str, SecretStr]] = {}
        """By conversation and model: a key is for the model that it came with, and for no other."""
        self._secrets: dict[str, dict[str, SecretStr]] = {}

    def profile(self, name: str | None) -> tuple[str, Agent]:
        """Return an agent of the server's by name, and the default one for None.

        Raises:
            Refused: There is none of that name (422).
        """
        if name is None:
            name = next(iter(self.profiles), None)
            if name is None:
                raise Refused(
                    422,
                    "agent_not_found",
                    "This server has no agents: bring your own, or start it with --model or --agents (create_app(agents=...)).",
                )
        if name not in self.profiles:
            names = ", ".join(map(repr, self.profiles)) or "none"
            raise Refused(422, "agent_not_found", f"The server has no agent of that name. There are: {names}.")
        return name, self.profiles[name]

    async def own_agent(self, own: OwnAgent) -> Agent:
        """Make a client's agent.

        Raises:
            Refused: It names what is not allowed (422).
        """
        return await restore_own_agent(own, self._model_addresses, self._parts)

    def hold_key(self, conversation_id: str, record: Mapping[str, JsonValue], key: SecretStr) -> None:
        """Keep the key of a client's agent in memory, for when the conversation is opened again."""
        self._keys.setdefault(conversation_id, {})[_model_of(record)] = key

    def hold_secrets(self, conversation_id: str, secrets: Mapping[str, SecretStr]) -> None:
        """Keep secrets of a conversation in memory, for when it is opened again."""
        if secrets:
            self._secrets.setdefault(conversation_id, {}).update(secrets)

    def hold_like(self, conversation_id: str, other: str) -> None:
        """Keep for a conversation what is kept for another one, which it is a copy of."""
        self._keys[conversation_id] = dict(self._keys.get(other, {}))
        self.hold_secrets(conversation_id, self._secrets.get(other, {}))

    def key_of(self, conversation_id: str, record: Mapping[str, JsonValue]) -> SecretStr | None:
        """Return the key that is kept for the model of a client's agent."""
        return self._keys.get(conversation_id, {}).get(_model_of(record))

    def has_key(self, row: ConversationRow, agent: AgentConfigured | None) -> bool:
        """Return whether the agent that works in a conversation has a key, or needs none of a client's."""
        return row.profile is not None or agent is None or self.key_of(row.id, agent.agent) is not None

    def forget(self, conversation_id: str, *, key_only: bool = False) -> None:
        """Drop the key of a conversation, and its secrets."""
        self._keys.pop(conversation_id, None)
        if not key_only:
            self._secrets.pop(conversation_id, None)

    async def check(self, spec: ConversationSpec) -> None:
        """Refuse a spec that could not be opened, before anything is written.

        Raises:
            Refused: It names an agent, a policy, a tool or a secret that is not possible here (422).
        """
        if isinstance(spec.agent, ClientAgent):
            agent = await self.own_agent(OwnAgent(spec.agent.record, spec.agent.model_key))
        else:
            agent = self.profile(spec.agent)[1]
        if spec.policy is not None and read_checks(spec.policy) is None:
            raise Refused(
                422,
                "policy_refused",
                "There is no such policy here. There are never_confirm, always_confirm and confirm_risky, "
                'as in {"name": "always_confirm"}.',
            )
        if self._client_parts is None and (spec.tools or spec.client_secrets or spec.confirm or spec.on_question):
            raise Refused(422, "client_parts_refused", "This server has no parts that run in clients.")
        try:
            parts = ClientParts() if self._client_parts is None else self._client_parts("", spec)
            parts.added_to(agent)
            SecretRegistry(
                {**parts.secrets, **{name: value.get_secret_value() for name, value in spec.secrets.items()}}
            )
        except ValidationError as error:
            detail = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, detail["loc"]))[:64]
            text = f"A tool that runs in the client does not fit: {where}: {detail['msg']}."
            raise Refused(422, "client_parts_refused", text) from None
        except (AgentcoreError, ValueError, TypeError) as error:
            raise Refused(422, "client_parts_refused", str(error)) from None

    async def open(self, row: ConversationRow, place: Place) -> tuple[Conversation, ClientParts]:
        """Open a conversation, making its log where there is none; return its handle, and the parts that clients run.

        Raises:
            Refused: Its agent is not possible here.
            StoreError: Its log can't be opened.
            AgentcoreError: It can't be resumed.
        """
        spec = ConversationSpec.model_validate_json(row.spec)
        parts = ClientParts() if self._client_parts is None else self._client_parts(row.id, spec)
        agent = await self._agent(row, spec, parts)
        values = {name: value.get_secret_value() for name, value in self._secrets.get(row.id, {}).items()}
        secrets: dict[str, SecretSource] = {**parts.secrets, **values}
        # What it began with is in force again only where the log does not have it: it may have been changed since.
        begins = not row.is_made
        confirm: Any = parts.confirm
        if confirm is None and begins and spec.policy is not None:
            confirm = read_checks(spec.policy)
        conversation = await self.host.open(
            agent,
            place.workspace,
            id=row.id,
            store=self.store,
            confirm=confirm,
            limits=spec.limits if begins else None,
            secrets=secrets or None,
            on_question=parts.on_question,
            attended=True,
            checkpoints=spec.checkpoints if begins else None,
        )
        if begins:
            try:
                if spec.title is not None and conversation.state.title != spec.title:
                    await conversation.set_title(spec.title)
                if spec.tags and dict(conversation.state.tags) != spec.tags:
                    await conversation.set_tags(spec.tags)
            except BaseException:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await conversation.close()  # nobody would attend it
                raise
        return conversation, parts

    async def _agent(self, row: ConversationRow, spec: ConversationSpec, parts: ClientParts) -> Agent | None:
        if row.profile is not None:
            agent = self.profiles.get(row.profile)
            return None if agent is None else parts.added_to(agent)  # None: gone from the file; the log has its record
        record = spec.agent.record if isinstance(spec.agent, ClientAgent) else None
        try:
            state = await read_log(self.store, row.id)
        except ConversationNotFound:
            state = None
        if state is not None and state.agent is not None and (row.is_made or record is None):
            record = state.agent.agent
            there = {f"the tool {tool.name!r}" for tool in parts.tools}
            if missing := [part for part in state.agent.missing if part not in there]:
                raise NotRecorded(row.id, missing)
        if record is None:
            raise Refused(409, "agent_not_found", "The conversation has no agent. Set one: PUT /agent.")
        # Never `agent=None`: the log would be read with the keys of the environment.
        return parts.added_to(await self.own_agent(OwnAgent(record, self.key_of(row.id, record))))


def _model_of(record: Mapping[str, JsonValue]) -> str:
    return json.dumps(record.get("llm"), sort_keys=True)


def digest_of(spec: ConversationSpec) -> tuple[str, str]:
    """Return a spec as JSON without the values of secrets and keys, and the digest of that: what PUT compares."""
    shown = spec.model_dump(mode="json")
    shown["secrets"] = dict.fromkeys(sorted(spec.secrets), "")
    if isinstance(spec.agent, ClientAgent):
        shown["agent"]["model_key"] = None
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"))
    return text, hashlib.sha256(text.encode()).hexdigest()
