"""The parts of a remote conversation that run in the client: tools, callbacks, and the values of secrets.

Above: the opening of the conversation, which says what they are. Below: `Answering`, for what the server asks by a frame, and
`Deciding`, for what waits in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast, final

from anyio.abc import TaskGroup
from pydantic import SecretStr

from agentcore.agent import Agent
from agentcore.commands import AddSecrets, Command, Interrupt, SetAgent
from agentcore.conversation.exceptions import safe_str
from agentcore.conversation.journal import Attachment
from agentcore.conversation.setup import Setup
from agentcore.errors import ConversationError
from agentcore.remote.agents import divide_tools, make_client_agent
from agentcore.remote.answering import Answering
from agentcore.remote.client import ServerClient
from agentcore.remote.deciding import Deciding
from agentcore.remote.follower import Follower
from agentcore.remote.link import RemoteLink
from agentcore.secrets import SecretRegistry, SecretSource
from agentcore.security import Confirm, is_checks
from agentcore.tools import AnyTool
from agentcore.wire.asks import AskResult, dump_ask_result
from agentcore.wire.frames import AskFrame, Withdraw
from agentcore.wire.requests import Version
from agentcore.wire.routes import Beside


@final
class RemoteParts:
    """See `ClientParts`.

    Args:
        setup: What the conversation was opened with.
        tools: The tools of its agent that run here.
        version: Of the server: which tools it has.
        client: The server.
        follower: Of the conversation.
    """

    def __init__(
        self, setup: Setup, tools: Sequence[AnyTool], version: Version, client: ServerClient, follower: Follower
    ) -> None:
        self._setup = setup
        self._tools = tuple(tools)
        self._version = version
        self._client = client
        self._follower = follower
        self._secrets = SecretRegistry(setup.secrets)
        self._added: dict[str, SecretSource] = {}
        """Secrets that were added since: a server that was started anew has not got them."""
        self._set: Callable[[], tuple[Command, Beside]] | None = None
        """Makes the command that sets the agent that was set last."""
        self._link: RemoteLink | None = None
        self._answering: Answering | None = None

    def start(self, link: RemoteLink, tasks: TaskGroup) -> None:
        """Begin: with the link's tasks, before its first frame."""
        setup = self._setup
        self._link = link
        self._answering = Answering(
            link,
            self._tools,
            tasks=tasks,
            post=self._post,
            secrets=self._secrets,
            deps=setup.deps,
            model=None if setup.agent is None else setup.agent.llm,
        )
        confirm = setup.confirm
        callback = None if confirm is None or is_checks(confirm) else cast("Confirm", confirm)
        if callback is not None or setup.on_question is not None:
            deciding = Deciding(link, confirm=callback, on_question=setup.on_question, on_error=self._callback_failed)
            tasks.start_soon(deciding.run, name="callbacks")

    async def stop(self) -> None:
        """Stop what runs, and close what tools hold open."""
        if self._answering is not None:
            await self._answering.aclose()

    def feed(self, frame: AskFrame | Withdraw) -> None:
        if self._answering is not None:
            self._answering.feed(frame)

    def prepare(self, command: Command, attachment: Attachment | None) -> tuple[Command, Beside | None]:
        match command:
            case AddSecrets() if attachment is not None:
                for name, source in attachment.secrets.items():
                    self._secrets.register(name, source)
                self._added |= attachment.secrets
                return command, _values_of(attachment.secrets)
            case SetAgent() if attachment is not None and attachment.agent is not None:
                return self._prepare_agent(command, attachment.agent)
            case _:
                return command, None

    def renewed(self) -> Sequence[tuple[Command, Beside]]:
        renewed: list[tuple[Command, Beside]] = []
        if self._added:
            renewed.append((AddSecrets(names=tuple(self._added)), _values_of(self._added)))
        if self._set is not None:
            renewed.append(self._set())
        return renewed

    def _prepare_agent(self, command: SetAgent, agent: Agent) -> tuple[Command, Beside]:
        there, here = divide_tools(agent, self._version)
        if added := [tool.name for tool in here if tool.name not in {each.name for each in self._tools}]:
            raise ConversationError(
                f"The tool {added[0]!r} runs in this program, and the server was not told of it when the conversation was "
                "opened. Open it again with the agent."
            )
        sent = make_client_agent(agent, there)

        def again() -> tuple[Command, Beside]:
            return SetAgent(agent=sent.record), Beside(model_key=sent.model_key)

        self._set = again
        return command.model_copy(update={"agent": sent.record, "missing": ()}), Beside(model_key=sent.model_key)

    async def _post(self, ask_id: str, result: AskResult) -> None:
        assert self._link is not None
        await self._client.request(
            "POST",
            f"{self._link.path}/asks/{ask_id}",
            content=dump_ask_result(result),
            headers={"Content-Type": "application/json"},
        )

    async def _callback_failed(self, error: Exception) -> None:
        """End the run with what a callback raised: whoever waits for it gets that."""
        link = self._link
        assert link is not None
        self._follower.fail_runs(error)
        reason = f"a callback of the program raised {type(error).__name__}: {self._secrets.mask(safe_str(error))}"
        await link.interrupt(Interrupt(run=link.state.run.seq, reason=reason))


def _values_of(secrets: Mapping[str, SecretSource]) -> Beside:
    """Return the values that are known; the server asks for the others."""
    return Beside(secrets={name: SecretStr(value) for name, value in secrets.items() if isinstance(value, str)})
