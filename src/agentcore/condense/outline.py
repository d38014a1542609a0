"""The outline of a history: its parts, their sizes, what may be cut, and how a model is asked about it.

Above: condensers, and the conversation, which makes an outline before each step. Below: the view, whose items these are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final, Literal, NamedTuple, cast

from pydantic import JsonValue

from agentcore._arguments import TEXT, Argument, check_arguments, instance_of, optional
from agentcore.condense.size import Sizes, estimate_content, estimate_text
from agentcore.context import LEFT_OUT, ViewItem
from agentcore.errors import InvalidCondensation
from agentcore.events import (
    ActionEvent,
    Condensation,
    CondensationReason,
    CondensationSummaryEvent,
    ContextAdded,
    MessageEvent,
    ObservationEvent,
)
from agentcore.llm import Model, Reply
from agentcore.messages import Message
from agentcore.record import ConversationState

ItemKind = Literal["user", "agent", "environment", "reply", "summary", "context"]

Ask = Callable[[Sequence[Message], Model | None], Awaitable[Reply]]
"""Asks a model, the agent's by default, within the limits of the conversation; its usage counts."""


class OutlineItem(NamedTuple):
    """A part of the history that can only be shown or forgotten as a whole."""

    kind: ItemKind
    """Who said it; "reply" is a reply with its calls and all of their answers, "context" a project file or a skill."""
    view: ViewItem
    tokens: int
    """About how many tokens it takes."""
    protected: str | None
    """Why it cannot be forgotten, or None where it can."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its events."""
        return tuple(event.id for event in self.view.events)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages that the model reads."""
        return self.view.messages

    @property
    def observations(self) -> Sequence[ObservationEvent]:
        """The answers of its calls that have content to leave out."""
        return [event for event in self.view.events if isinstance(event, ObservationEvent)]


def _all_are(kind: type, description: str) -> Argument:
    def accepts(value: object) -> bool:
        # An item is a tuple too: one alone is not a list of them.
        if isinstance(value, str | OutlineItem) or not isinstance(value, Collection):
            return False
        return all(isinstance(each, kind) for each in cast("Collection[object]", value))

    return Argument(description, accepts)


_FORGET: Final = {
    "items": _all_are(OutlineItem, "a list of items of `outline.items`"),
    "summary": optional(TEXT),
    "fields": optional(instance_of(dict, description="a dict")),
    "mask": _all_are(ObservationEvent, "a list of answers, as `item.observations` has them"),
}


@dataclass(frozen=True, kw_only=True)
class Outline:
    """The history as the model is shown it now. Sizes are in tokens, estimated by what the provider counted last."""

    reason: CondensationReason
    """Why it is asked: "soft" before every step; "hard" where the next request is too large; "asked" by a person or a program."""
    room: int
    """The largest size of a request: the model's window less what it may write."""
    state: ConversationState = field(repr=False)
    """The conversation: tasks (`state.last_data("task_tracker")`), the whole log, usage. To be read, and not to be changed."""
    epoch: int
    """`state.view_epoch` when it was made: a condensation of it is dropped where the history was cut or rewound meanwhile."""
    sizes: Sizes = field(repr=False)
    head: Sequence[Message] = field(repr=False)
    """The messages before the items: the system prompt."""
    ask_model: Ask = field(repr=False)
    can_recall: bool = True
    """True if the agent has `recall`, which reads what is forgotten: a summary may name it then."""

    @property
    def used(self) -> int:
        """The size of the next request, with the system prompt and the tools."""
        return self.sizes.used

    @cached_property
    def items(self) -> Sequence[OutlineItem]:
        """The parts in the order of the view. A cut may fall between any two of them."""
        shown = self.sizes.items[: self.sizes.length]
        newest = next((item for item in reversed(shown) if _kind(item) == "user"), None)
        items: list[OutlineItem] = []
        for item, estimate in zip(shown, self.sizes.estimates, strict=False):
            kind = _kind(item)
            protected = "it is the newest message of the user" if item is newest else None
            if item is shown[-1] and protected is None and kind == "context":
                protected = "the model has not seen it yet"
            items.append(OutlineItem(kind, item, round(estimate * self.sizes.scale), protected))
        return items

    @property
    def last_summary(self) -> Condensation | None:
        """The newest summary that is still shown."""
        for item in reversed(self.items):
            if isinstance(event := item.view.events[0], Condensation):
                return event
        return None

    def forget(
        self,
        items: Collection[OutlineItem],
        *,
        summary: str | None = None,
        fields: dict[str, JsonValue] | None = None,
        mask: Iterable[ObservationEvent] = (),
    ) -> Condensation:
        """Make the condensation that forgets these items, and shows a summary in place of the first of them.

        Args:
            items: Of this outline; an earlier summary among them is absorbed.
            summary: The text that the model reads in their place.
            fields: The parts of the summary, for programs and for the next summary.
            mask: Answers that stay, without their content.

        Raises:
            InvalidCondensation: One of them cannot be forgotten, or nothing is.
            TypeError: An argument is not what it has to be.
        """
        mask = tuple(mask)
        check_arguments(_FORGET, items=items, summary=summary, fields=fields, mask=mask)
        chosen = set(map(id, (item.view for item in items)))
        forgotten = [event.id for item in self.items if id(item.view) in chosen for event in item.view.events]
        condensation = Condensation(
            forgotten=tuple(forgotten),
            masked=tuple(event.id for event in mask),
            summary=summary,
            fields=fields or {},
            reason=self.reason,
            tokens_before=self.used,
        )
        self.check(condensation)
        return condensation.model_copy(update={"tokens_after": self.used - self.freed_by(condensation)})

    def mask(self, observations: Iterable[ObservationEvent]) -> Condensation:
        """Make the condensation that leaves out the content of these answers.

        Raises:
            InvalidCondensation: One of them is not shown, or its content is left out already; or there is none.
            TypeError: One of them is not an answer.
        """
        return self.forget((), mask=observations)

    def freed_by(self, condensation: Condensation) -> int:
        """Return about how many tokens a condensation of this history frees, less its summary."""
        forgotten, masked = set(condensation.forgotten), set(condensation.masked)
        freed = sum(item.tokens for item in self.items if item.ids[0] in forgotten)
        for item in self.items:
            freed += sum(self.mask_frees(event) for event in item.observations if event.id in masked)
        return freed - (self.tokens_of(condensation.summary) if condensation.summary else 0)

    def tokens_of(self, text: str) -> int:
        """Return about how many tokens a text takes."""
        return round(estimate_text(text) * self.sizes.scale)

    def mask_frees(self, observation: ObservationEvent) -> int:
        """Return about how many tokens leaving out the content of an answer frees; 0 where it is left out already."""
        if observation.id in self.state.masked:
            return 0
        return max(0, round((estimate_content(observation.content) - _left_out_size()) * self.sizes.scale))

    def check(self, condensation: Condensation) -> None:
        """Check that a condensation leaves a history that a model accepts.

        Raises:
            InvalidCondensation: It is empty, names unknown events or parts of replies, or forgets what has to stay.
        """
        forgotten, masked = set(condensation.forgotten), set(condensation.masked)
        if not forgotten and not masked:
            raise InvalidCondensation("It is empty: it neither forgets nor masks anything.")
        if condensation.summary is not None and (not forgotten or not condensation.summary.strip()):
            raise InvalidCondensation(
                "Its summary is blank, or stands for nothing: a summary needs events that it stands for."
            )
        known: set[str] = set()
        maskable: set[str] = set()
        first: OutlineItem | None = None
        for item in self.items:
            ids = item.ids
            known.update(ids)
            gone = forgotten.intersection(ids)
            if gone and len(gone) < len(ids):
                raise InvalidCondensation(
                    f"It forgets a part of a reply ({_listed(gone)}): forget all of it, or nothing."
                )
            if gone and item.protected:
                raise InvalidCondensation(f"It forgets {_listed(gone)}, which has to stay: {item.protected}.")
            if not gone:
                maskable.update(event.id for event in item.observations if event.id not in self.state.masked)
            if first is None and (not gone or condensation.summary is not None):
                first = item
        if unknown := forgotten - known:
            raise InvalidCondensation(f"It forgets {_listed(unknown)}, which the model is not shown.")
        if wrong := masked - maskable:
            raise InvalidCondensation(
                f"It masks {_listed(wrong)}: only answers that are shown with their content can be masked."
            )
        summarised = first is not None and forgotten.intersection(first.ids)
        if first is not None and not summarised and first.kind in ("agent", "reply"):
            raise InvalidCondensation(
                "It leaves a history that begins with the agent: keep a message of the user, or add a summary."
            )

    async def ask(self, words: str, *, before: int | None = None, llm: Model | None = None) -> Reply:
        """Ask a model about the history: the step's own messages, so that the provider has them in its cache, and one more.

        Its usage counts, as that of a step does.

        Args:
            words: The last message of the request.
            before: Send only the items before this index; None is all of them.
            llm: Ask this model; None is the agent's.

        Raises:
            ModelError: There is no reply.
            LimitReached: A budget of the conversation is used up.
        """
        messages = [*self.head]
        for item in self.items[:before]:
            messages.extend(item.messages)
        return await self.ask_model([*messages, Message.user(words)], llm)


@cache
def _left_out_size() -> int:
    return estimate_text(LEFT_OUT)


def _listed(ids: Collection[str]) -> str:
    some = sorted(ids)[:3]
    return ", ".join(some) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


def _kind(item: ViewItem) -> ItemKind:
    match item.events[0]:
        case ActionEvent():
            return "reply"
        case MessageEvent() as event:
            return event.source
        case ContextAdded():
            return "context"
        case Condensation() | CondensationSummaryEvent():
            return "summary"
        case _:
            return "environment"
