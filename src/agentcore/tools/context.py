"""The context of a running tool.

Above: the conversation, which makes a `ToolContext` for every call and answers it as its `ToolHost`. A tool holds nothing
of the conversation itself.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeAlias, cast

from pydantic import JsonValue
from typing_extensions import TypeVar

from agentcore.record import ConversationState
from agentcore.workspace import Workspace

DepsT_co = TypeVar("DepsT_co", covariant=True, default=Any)
"""The type of what the program passes as `deps`."""

Medium: TypeAlias = Literal["image", "pdf"]
"""A kind of content, other than words, that a model may accept."""


class ToolSecrets(Protocol):
    """Secrets by name, to read."""

    @property
    def names(self) -> Sequence[str]:
        """The names that there are; asking for them asks no source for a value."""
        ...

    async def get(self, name: str) -> str:
        """Return the secret's value, or raise `SecretError`."""
        ...

    def mask(self, text: str) -> str:
        """Return a text with every value that is known masked. All that a tool says is masked: this is for what is cut."""
        ...

    def unfinished(self, text: str) -> int:
        """Return how many characters at the end of a text may belong to a value that goes on in what follows."""
        ...


class Spool(Protocol):
    """A file in the workspace's private folder that grows while an output comes, masked. It may outlive the call."""

    @property
    def path(self) -> str:
        """Where it is, in the workspace."""
        ...

    @property
    def full(self) -> bool:
        """True if it holds as much as it may, and what comes now is left out."""
        ...

    async def append(self, text: str) -> None:
        """Add to it; what might be the beginning of a secret is written later.

        Raises:
            WorkspaceError: it can't be written.
        """
        ...

    async def finish(self) -> None:
        """Write what was held back, and say in a last line if something was left out.

        Raises:
            WorkspaceError: it can't be written.
        """
        ...


class ToolHost(Protocol):
    """The services of a conversation for the tools that run in it."""

    async def progress(self, action_id: str, text: str) -> None:
        """Show it to those who watch now; it may be dropped, and is not recorded."""
        ...

    async def send(self, text: str) -> None:
        """Record a message, which the model reads at its next step."""
        ...

    async def interrupt(self) -> None:
        """Stop the turn."""
        ...

    async def ask(self, question: str) -> str:
        """Ask the model something on the side; the history does not change."""
        ...

    async def question(self, text: str, schema: Mapping[str, JsonValue] | None, options: Sequence[str]) -> JsonValue:
        """Ask a person, wait, and return the answer."""
        ...

    async def spool(self, name: str, data: bytes) -> str:
        """Keep data in the workspace's private folder and give its path there."""
        ...

    async def open_spool(self, name: str, limit: int) -> Spool:
        """Begin a file in the workspace's private folder that takes so many bytes."""
        ...

    async def model_accepts(self, medium: Medium) -> bool | None:
        """Return whether the model can look at it; None where that is unknown."""
        ...

    def last_data(self, tool_name: str) -> Mapping[str, JsonValue] | None:
        """Return the data of the tool's newest observation, on the active branch of the history."""
        ...

    @property
    def state(self) -> ConversationState:
        """The conversation's state, to be read and not to be changed."""
        ...

    def shown_parts(self) -> Collection[str]:
        """Return the names of the parts of context (project files, skills ...) that the model is shown now."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class ToolContext(Generic[DepsT_co]):
    """Handed to a tool with every call. `ToolContext[MyDeps]` gives `ctx.deps` its type."""

    workspace: Workspace
    """Where the tool acts: commands and files go through it."""
    secrets: ToolSecrets = field(repr=False)
    """`await ctx.secrets.get(name)`; what is read here is masked in what the tool says."""
    conversation_id: str
    action_id: str
    """The id of the action: unique, and the same when the action is tried again. Use it as an idempotency key."""
    call_id: str
    """The provider's id of the call. It may come twice in a conversation; `action_id` does not."""
    tool_name: str
    host: ToolHost = field(repr=False)
    """The conversation that answers the questions below."""
    deps: DepsT_co = field(default=cast("DepsT_co", None), repr=False)
    """The value that the program passed as `Conversation(deps=...)`: a database, a client, the user. It is never recorded."""
    resumed: bool = False
    """True if the tool ran in this conversation before that was opened this time: what it held then is gone, and the model
    counts on it."""
    _cancel: threading.Event = field(default_factory=threading.Event, init=False, repr=False)

    async def progress(self, text: str) -> None:
        """Report progress to the people who watch. Lossy: it is neither recorded nor shown to the model."""
        await self.host.progress(self.action_id, text)

    async def send(self, text: str) -> None:
        """Add a message to the conversation; the model reads it at its next step."""
        await self.host.send(text)

    async def interrupt(self) -> None:
        """Stop the turn that this call is a part of, this call included."""
        await self.host.interrupt()

    async def ask(self, question: str) -> str:
        """Ask the model a side question that leaves no trace in the history."""
        return await self.host.ask(question)

    async def question(
        self, text: str, schema: Mapping[str, JsonValue] | None = None, options: Sequence[str] = ()
    ) -> JsonValue:
        """Ask the people of the conversation, and wait for the answer while the call runs. The clock of the run stands.

        Args:
            text: The question.
            schema: The JSON Schema of the answer, where it is not text.
            options: Answers to choose from, where it is a choice.

        Raises:
            QuestionDeclined: Somebody declined, or nobody attends (`Conversation(on_question=...)`, `attended=True`).
            ValueError: The question is empty, too long, or `schema` is not a JSON Schema.
        """
        return await self.host.question(text, schema, options)

    async def spool(self, name: str, data: str | bytes) -> str:
        """Keep the whole of an output in the workspace's private folder, and give the path where it can be read."""
        return await self.host.spool(name, data.encode() if isinstance(data, str) else data)

    async def open_spool(self, name: str, *, limit: int) -> Spool:
        """Begin a file in the workspace's private folder for an output that comes piece by piece.

        Args:
            name: What it is called there.
            limit: How many bytes it takes: the beginning of the output. What a conversation keeps is bounded as a whole, too.

        Raises:
            WorkspaceError: it can't be made.
        """
        return await self.host.open_spool(name, limit)

    async def model_accepts(self, medium: Medium) -> bool | None:
        """Return whether the model can look at a picture or a PDF; None where that is unknown."""
        return await self.host.model_accepts(medium)

    @property
    def last_data(self) -> Mapping[str, JsonValue] | None:
        """The data that this tool recorded last (`Observation.to_data`), on the active branch of the history; None for nothing.

        A tool that records all of its state each time has here a state that is resumed, forked and rewound with the
        conversation, and that is there when the model is not shown it any more.
        """
        return self.host.last_data(self.tool_name)

    @property
    def state(self) -> ConversationState:
        """The state of the conversation, with its whole log: to be read, and not to be changed."""
        return self.host.state

    @property
    def shown_parts(self) -> Collection[str]:
        """The names of the parts of context that the model is shown now, as "skill:deploy": in its prompt or after it."""
        return self.host.shown_parts()

    @property
    def cancel_requested(self) -> bool:
        """True if the call was cancelled. For a synchronous tool, whose thread can't be stopped: look, and return."""
        return self._cancel.is_set()

    def request_cancel(self) -> None:
        """Make `cancel_requested` true, from any thread. It stops nothing by itself."""
        self._cancel.set()
