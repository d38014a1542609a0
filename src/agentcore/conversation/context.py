"""The sources of context of one conversation: opened, and asked when something happened.

Above: the prompt source, which shows what they return. A source that fails or is slow is left out, and people are told so:
it ends no run.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import anyio
from anyio import get_cancelled_exc_class

from agentcore.context import ContextPart, ContextSource, Happened, OpenSource, SourceContext
from agentcore.conversation.exceptions import is_cancelled, masked_repr, safe_str, spurious_cancellation
from agentcore.conversation.guards import mark_running_in
from agentcore.events import ContextNotice, ConversationStateUpdateEvent
from agentcore.logs import get_logger
from agentcore.record import ConversationState
from agentcore.secrets import SecretRegistry
from agentcore.workspace import Workspace

_log = get_logger(__name__)

_SOURCE_SECONDS: Final = 10.0
"""How long a source may take to open, and to answer."""


class ContextReader:
    """Opens the sources of one agent for one conversation, and asks them."""

    def __init__(
        self, sources: Sequence[ContextSource], workspace: Workspace, secrets: SecretRegistry, conversation_id: str
    ) -> None:
        self._sources = sources
        self._workspace = workspace
        self._secrets = secrets
        self._id = conversation_id
        self._open: list[tuple[ContextSource, OpenSource]] = []
        self._notices: list[ContextNotice] = []
        self._told: set[tuple[str, str]] = set()
        self.parts: tuple[ContextPart, ...] = ()
        """The parts for the prompt, as they were when the sources were opened."""

    async def open(self, seconds: float | None) -> None:
        """Open all sources at once, also those that are open. Each has 10 seconds, and no more than a step has."""
        limit = _SOURCE_SECONDS if seconds is None else min(seconds, _SOURCE_SECONDS)
        found: dict[int, tuple[OpenSource, tuple[ContextPart, ...], tuple[str, ...]]] = {}

        async def open_source(number: int, source: ContextSource) -> None:
            async def read() -> None:
                opened = await source.open(SourceContext(workspace=self._workspace, mask=self._secrets.mask))
                found[number] = opened, _checked(opened.parts), tuple(map(str, opened.problems))

            await self._attempt(source, "open", limit, read)

        with mark_running_in(self._id):
            async with anyio.create_task_group() as tasks:
                for number, source in enumerate(self._sources):
                    tasks.start_soon(open_source, number, source, name=f"context source {source.name}")
        self._open = []
        parts: dict[str, ContextPart] = {}
        for number in sorted(found):
            source = self._sources[number]
            opened, its_parts, problems = found[number]
            self._open.append((source, opened))
            for problem in problems:
                self._notify(source, "left_out", problem)
            for part in its_parts:
                if parts.setdefault(part.name, part) is not part:
                    self._notify(
                        source, "left_out", f"There is another part called {part.name!r}: this one is left out."
                    )
        self.parts = tuple(parts.values())

    async def follow(self, happened: Happened, seconds: float | None) -> Sequence[ContextPart]:
        """Return the parts to show because of what happened, each source's in turn. One that hangs is not asked again."""
        limit = _SOURCE_SECONDS if seconds is None else min(seconds, _SOURCE_SECONDS)
        found: list[ContextPart] = []
        for source, opened in tuple(self._open):

            async def ask(source: ContextSource = source, opened: OpenSource = opened) -> None:
                found.extend(_checked(await opened.follow(happened)))
                for problem in opened.problems:
                    self._notify(source, "left_out", str(problem))

            with mark_running_in(self._id):
                if not await self._attempt(source, "answer", limit, ask):
                    self._open.remove((source, opened))
        return found

    def take_notices(self, state: ConversationState) -> tuple[ContextNotice, ...]:
        """Return what people should know of the sources since this was last asked, to be recorded: what the log does not say yet."""
        if not self._notices:
            return ()
        notices, self._notices = self._notices, []
        recorded = {
            (event.update.name, event.update.detail)
            for event in state.events
            if isinstance(event, ConversationStateUpdateEvent) and isinstance(event.update, ContextNotice)
        }
        mask = self._secrets.mask
        return tuple(each for each in notices if (mask(each.name), mask(each.detail)) not in recorded)

    async def _attempt(
        self, source: ContextSource, what: str, limit: float, attempt: Callable[[], Coroutine[Any, Any, None]]
    ) -> bool:
        """Do it, or notify people of its failure; False where it took too long."""
        with anyio.move_on_after(limit) as scope:  # noqa: ASYNC912 the source may wait for nothing
            try:
                await attempt()
            except Exception as error:  # a source is anybody's code
                self._note_failure(source, error)
            except get_cancelled_exc_class() as error:  # noqa: ASYNC103 only one of a scope in force is a cancellation
                if await is_cancelled():  # noqa: ASYNC102 asking does not wait
                    raise
                self._note_failure(source, spurious_cancellation("It", error))
        if scope.cancelled_caught:
            detail = f"The context source {source.name!r} did not {what} within {limit:g} s."
            self._notify(source, "source_failed", detail)
        return not scope.cancelled_caught

    def _note_failure(self, source: ContextSource, error: BaseException) -> None:
        detail = f"The context source {source.name!r} failed: {safe_str(error) or type(error).__name__}"
        self._notify(source, "source_failed", detail)
        _log.warning("context source failed", source=source.name, error=masked_repr(self._secrets, error))

    def _notify(self, source: ContextSource, code: str, detail: str) -> None:
        if (source.name, detail) not in self._told:
            self._told.add((source.name, detail))
            self._notices.append(ContextNotice(name=source.name, code=code, detail=detail))


def _checked(parts: Sequence[ContextPart]) -> tuple[ContextPart, ...]:
    made = tuple(ContextPart(*part) for part in parts)
    for part in made:
        if not (isinstance(part.name, str) and isinstance(part.text, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"it returned {part!r}: a part is a name and a text.")
    return made
