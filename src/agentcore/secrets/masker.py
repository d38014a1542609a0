"""The one place where secrets are taken out of what is written, shown or sent to a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NoReturn, TypeVar, final

from pydantic import BaseModel

from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    EventBase,
    QuestionAnswered,
    QuestionAsked,
    WrittenCall,
)
from agentcore.messages import DocumentBlock, ImageBlock, ReasoningBlock, ThinkingBlock
from agentcore.secrets.forms import check_value, encoded_forms
from agentcore.secrets.leaves import LeafMap, text_fields
from agentcore.secrets.scan import Mask, Scanner

_Json = TypeVar("_Json")
_Model = TypeVar("_Model", bound=BaseModel)
_Event = TypeVar("_Event", bound=EventBase)

_Media = ImageBlock | DocumentBlock
_Restored = ActionEvent | ActionAssessed | ActionApproved | QuestionAsked | QuestionAnswered
_RESTORED_FIELDS = frozenset(("arguments", "note", "answer"))
_EMBEDDED_MEDIA = re.compile(r"data:[\w.+-]+/[\w.+-]+(;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]*")


@final
class Masker:
    """Puts `<secret:NAME>` in the place of every known value, plain or encoded.

    It knows the values of one moment. What holds none of them comes back as the same object.
    """

    __slots__ = ("_byte_scanner", "_knows_nothing", "_names", "_scanner", "_shown")

    def __init__(self, known: Iterable[tuple[str, str]] = ()) -> None:
        """Build a masker of these pairs of name and value; where several have one value, the first names its mask.

        Raises:
            SecretError: a value is too short, blank, or not Unicode.
        """
        pairs = tuple(known)
        for name, value in pairs:
            check_value(name, value)
        self._names = tuple(dict.fromkeys(name for name, _ in pairs))
        self._scanner = Scanner(_masks(pairs))
        self._knows_nothing = not pairs
        self._byte_scanner: Scanner | None = None
        self._shown = LeafMap(self._scanner.replace, self.mask_model, _is_signed)

    def __repr__(self) -> str:
        return f"Masker(names={self._names!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A masker holds the values of secrets: it can't be copied or pickled.")

    def mask_text(self, text: str) -> str:
        """Mask a text that is complete; for one that arrives in pieces, see `stream`."""
        return self._scanner.replace(text)

    def unfinished(self, text: str) -> int:
        """Return how many characters at the end of a text may belong to a value that goes on in what follows.

        A text may be cut in front of them: no value that is known lies on both sides.
        """
        return len(text) - self._scanner.last_cut(text)

    def mask_bytes(self, data: bytes) -> bytes:
        """Mask the output of a program that is complete; values are looked for in UTF-8."""
        return self._for_bytes().replace(data.decode("latin-1")).encode("latin-1")

    def mask_json(self, value: _Json) -> _Json:
        """Mask every string in a JSON value, the keys of objects too."""
        masked: _Json = value if self._knows_nothing else self._shown(value)
        return masked

    def mask_event(self, event: _Event) -> _Event:
        """Mask an event, before it is written: `mask_model`, by the name under which one looks for it."""
        return self.mask_model(event)

    def mask_model(self, model: _Model) -> _Model:
        """Mask the strings of a model, in nested ones too, except in fields that are marked as verbatim.

        A signed block that holds a secret goes from the tuple it stands in: it can neither be kept nor be changed.
        """
        if self._knows_nothing:
            return model
        changes = self._changes(model)
        extra = model.__pydantic_extra__
        masked_extra = self._shown(extra) if extra else extra
        if not changes and masked_extra is extra:
            return model
        if _is_signed(model):
            # Reached only where no tuple is there to leave it out of: without the signature, which fits no longer.
            changes["signature" if isinstance(model, ThinkingBlock) else "encrypted_content"] = None
        masked = model.model_copy(update=changes)
        if masked_extra is not extra:
            # Not through `update`: a key may have become another one. And frozen models have no other door.
            object.__setattr__(masked, "__pydantic_extra__", masked_extra)
        return masked

    def stream(self) -> StreamMasker:
        """Start on a text that arrives in pieces."""
        return StreamMasker(lambda: self._scanner)

    @staticmethod
    def follow(current: Callable[[], Masker]) -> StreamMasker:
        """Start on a text that arrives in pieces, each masked by the masker of its moment: a value may become known meanwhile."""
        return StreamMasker(lambda: current()._scanner)

    def byte_stream(self) -> ByteStreamMasker:
        """Start on a program's output that arrives in pieces."""
        return ByteStreamMasker(self._for_bytes())

    def _changes(self, model: BaseModel) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for name in text_fields(type(model)):
            value = getattr(model, name)
            if name in _RESTORED_FIELDS and isinstance(model, _Restored):
                masked = self._mask_arguments(value, model.typed_masks)
            elif isinstance(model, ActionEvent) and isinstance(value, WrittenCall):
                masked = self._mask_written(value, model.typed_masks)
            elif isinstance(model, _Media) and name == "url" and value and _EMBEDDED_MEDIA.fullmatch(value):
                continue
            else:
                masked = self._shown(value)
            if masked is not value:
                changes[name] = masked
        return changes

    def _mask_arguments(self, arguments: Any, typed: Collection[str]) -> Any:
        # An action that waits through a restart gets its values back by name, so that here a name has to stand for
        # exactly what it replaced.
        mask = LeafMap(lambda text: self._scanner.replace_restorably(text, typed), self.mask_model, _is_signed)
        return mask(arguments)

    def _mask_written(self, written: WrittenCall, typed: Collection[str]) -> WrittenCall:
        # By the same names as in the arguments that run: the model reads both, in the call and in what is said of it.
        masked, arguments = self.mask_model(written), self._mask_arguments(written.arguments, typed)
        return masked if masked.arguments == arguments else masked.model_copy(update={"arguments": arguments})

    def _for_bytes(self) -> Scanner:
        # Bytes are read as characters of the same numbers, which loses nothing and leaves one way to look for forms.
        if self._byte_scanner is None:
            masks = self._scanner.masks.items()
            self._byte_scanner = Scanner({form.encode().decode("latin-1"): mask for form, mask in masks})
        return self._byte_scanner


def _is_signed(item: object) -> bool:
    if isinstance(item, ThinkingBlock):
        return item.signature is not None
    return isinstance(item, ReasoningBlock) and item.encrypted_content is not None


def _masks(pairs: tuple[tuple[str, str], ...]) -> dict[str, Mask]:
    masks: dict[str, Mask] = {}
    for name, value in pairs:
        masks.setdefault(value, Mask(f"<secret:{name}>", f"<secret:{name}:encoded>", exact=True))
    for name, value in pairs:
        for form in encoded_forms(value):
            masks.setdefault(form, Mask(f"<secret:{name}>", f"<secret:{name}:encoded>", exact=False))
    # Where a value is a part of another's mask ("secret" is a word of six letters), the mask becomes a form too, so
    # that what was masked once is not torn apart by being masked again.
    for mask in dict.fromkeys(text for known in masks.values() for text in (known.name, known.lost)):
        if any(form in mask for form in masks):
            masks.setdefault(mask, Mask(mask, mask, exact=True))
    return masks


@final
class StreamMasker:
    """Takes pieces and gives them back masked, later by just what might be the beginning of a secret.

    All that it gives out, put together, is what masking the whole text at once would give. Made by
    `Masker.stream()`; each is for one text.
    """

    def __init__(self, scanner: Callable[[], Scanner]) -> None:
        """Take what returns the scanner of now; a later one knows all forms of an earlier one."""
        self._scanner = scanner
        self._held = ""
        # How much of what is held belongs to a stretch whose mask has been given out already.
        self._covered = 0

    def feed(self, piece: str) -> str:
        """Take the next piece and give what can be told by now; often that is the piece itself, or nothing."""
        scanner = self._scanner()
        if not scanner.masks:
            return piece
        text = self._held + piece if self._held else piece
        return self._give_out(scanner, text, scanner.undecided_from(text))

    def finish(self) -> str:
        """Return the text held back: the text is complete."""
        return self._give_out(self._scanner(), self._held, len(self._held))

    def _give_out(self, scanner: Scanner, text: str, until: int) -> str:
        pieces: list[str] = []
        at = self._covered
        for span in scanner.spans(text):
            if span.start >= until:
                break
            if span.start >= at:
                pieces += (text[at : span.start], scanner.mask_of(span))
            at = max(at, span.end)
        pieces.append(text[at:until])
        self._held = text[until:]
        self._covered = max(0, at - until)
        return "".join(pieces)


@final
class ByteStreamMasker:
    """A `StreamMasker` for a program's output, made by `Masker.byte_stream()`."""

    def __init__(self, scanner: Scanner) -> None:
        """Take a scanner of forms in which each character stands for one byte of UTF-8."""
        self._text = StreamMasker(lambda: scanner)

    def feed(self, piece: bytes) -> bytes:
        """Take the next piece and give what can be told by now."""
        return self._text.feed(piece.decode("latin-1")).encode("latin-1")

    def finish(self) -> bytes:
        """Return the text held back: the output is complete."""
        return self._text.finish().encode("latin-1")
