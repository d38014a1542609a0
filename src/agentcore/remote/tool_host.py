"""The host of a tool that runs in the program while its conversation is held by a server.

Above: `Answering`, which makes one for each call. What only the conversation itself could do is refused, and the error says
what to use instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, NoReturn, final

import anyio
from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from agentcore import commands
from agentcore.context import ShownParts
from agentcore.conversation.link import Link
from agentcore.errors import AgentcoreError, ToolError
from agentcore.llm import Model, model_features
from agentcore.record import ConversationState
from agentcore.secrets import SecretRegistry
from agentcore.tools import Medium, Spool

_MOST_PROGRESS: Final = 65_536
"""Characters of progress that wait to be sent; of more than that the beginning is dropped."""


@final
class ClientToolHost:
    """Answers what a call asks of its conversation, over the link."""

    def __init__(self, link: Link, secrets: SecretRegistry, *, model: Model | None) -> None:
        self._link = link
        self._secrets = secrets
        self._model = model
        self._masking = secrets.stream()
        self._progress = ""
        self._news = anyio.Event()

    async def progress(self, action_id: str, text: str) -> None:
        """Keep it to be sent with the next piece; the tool does not wait for the server."""
        del action_id
        self._progress = (self._progress + self._masking.feed(text))[-_MOST_PROGRESS:]
        self._news.set()
        await checkpoint()

    def take_progress(self) -> str:
        """Return what was not sent yet, to its end: the call is over."""
        text, self._progress = self._progress + self._masking.finish(), ""
        return text

    async def send_progress(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Send progress as it comes, until cancelled: while a piece is on its way, what comes is the next one."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            text, self._progress = self._progress, ""
            if text:
                try:
                    await send(text)
                except AgentcoreError:
                    return  # it is lossy, and the answer itself is what is tried again

    async def send(self, text: str) -> None:
        """Refuse: a message from here would be the user's."""
        del text
        self._refuse("ctx.send", "Return the text, so that the model reads it as the tool's answer.")

    async def interrupt(self) -> None:
        """Stop the turn of the call."""
        await self._link.interrupt(commands.Interrupt(run=self._link.state.run.seq, reason="a tool asked for it"))

    async def ask(self, question: str) -> str:
        """Ask the model a side question."""
        return str(await self._link.job(commands.Ask(question=question)))

    async def question(self, text: str, schema: Mapping[str, JsonValue] | None, options: Sequence[str]) -> JsonValue:
        """Refuse: the question would not be in the log."""
        del text, schema, options
        self._refuse(
            "ctx.question", "Give the agent the tool ask_user, or ask the person directly: it runs in your program."
        )

    async def spool(self, name: str, data: bytes) -> str:
        """Keep a whole output in the workspace's private folder and return its path."""
        workspace = self._link.workspace
        path = f"{await workspace.private_folder(self._link.state.conversation_id)}/{name}"
        await workspace.write(path, self._secrets.masker.mask_bytes(data))
        return path

    async def open_spool(self, name: str, limit: int) -> Spool:
        """Refuse: pieces would each take a way to the server and back."""
        del name, limit
        self._refuse("ctx.open_spool", "Use ctx.spool(name, data) with the whole output.")

    async def model_accepts(self, medium: Medium) -> bool | None:
        """Return whether the agent's model can look at it; None where the model is the server's."""
        features = None if self._model is None else await model_features(self._model)
        await checkpoint()
        return features and (features.vision if medium == "image" else features.pdf)

    def last_data(self, tool_name: str) -> Mapping[str, JsonValue] | None:
        """Return the data of a tool's newest observation."""
        return self._link.state.last_data(tool_name)

    @property
    def state(self) -> ConversationState:
        """The state, as far as the program has followed it."""
        return self._link.state

    def shown_parts(self) -> Collection[str]:
        """Return the names of the parts of context that the model is shown now."""
        return frozenset(ShownParts().update(self._link.state))

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise ToolError(f"{what} is not there for a tool that runs in the client of a server. {instead}")
