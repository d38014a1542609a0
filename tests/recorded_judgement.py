"""How far a reply of ours is what a recording says, and what litellm is known to lose. As a program: a table of both.

python tests/recorded_judgement.py FILE
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from agentcore.errors import ModelError
from agentcore.llm import Reply
from recorded_reader import Piece, Refused, Said, said_by, said_in
from recorded_traffic import Recording, Route, Server, load, serve_recordings

__all__ = ["REASONS", "Answer", "ask", "different", "lost", "spoken"]

Answer = Reply | ModelError


async def ask(server: Server, recording: Recording, route: Route, **settings: Any) -> Answer:
    """Ask, and give the reply or the error."""
    try:
        with anyio.fail_after(60):
            return await server.ask(recording, route, **settings)
    except ModelError as error:
        return error


def different(answer: Answer, recording: Recording) -> dict[str, tuple[object, object]]:
    """Say what is not as recorded: by name, what came and what was to come."""
    expected = said_in(recording)
    if isinstance(expected, Refused) or isinstance(answer, ModelError):
        return {} if _is_that_error(answer, expected) else {"error": (answer, expected)}
    return _between(said_by(answer), expected, answer)


def _is_that_error(answer: Answer, expected: Said | Refused) -> bool:
    return (
        isinstance(expected, Refused)
        and isinstance(answer, expected.kind)
        and answer.status == expected.status
        and expected.sentence in str(answer)
    )


def _between(said: Said, expected: Said, reply: Reply) -> dict[str, tuple[object, object]]:
    pieces = _comparable(said.pieces)
    if expected.signatures or any(piece[:2] == ("call", None) for piece in expected.pieces):
        # Gemini's calls have no ids, and its signatures no blocks: both are given a place by whoever reads them.
        pieces = [("call", None, *piece[2:]) if piece[0] == "call" else piece for piece in pieces]
    pairs: dict[str, tuple[object, object]] = {
        "pieces": (pieces, _comparable(expected.pieces)),
        "cited": (said.cited, expected.cited),
        "stop": (said.stop, expected.stop),
        "usage": (said.usage, expected.usage),
        "model": (said.model, expected.model),
        "id": (said.id, expected.id),
    }
    found = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    written = reply.model_dump_json()
    if missing := [signature for signature in expected.signatures if signature not in written]:
        found["signatures"] = ("missing", missing)
    return found


def _comparable(pieces: list[Piece]) -> list[Piece]:
    return [("own", _without_nulls(piece[1])) if piece[0] == "own" else piece for piece in pieces]


def _without_nulls(value: Any) -> Any:
    """Leave out what says nothing: litellm writes a null for each field that its types know and the provider left out."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def spoken(recording: Recording, route: Route) -> bool:
    """Whether a route speaks a recording's interface at all."""
    if route == "native":
        return True
    # litellm speaks Ollama's own interface, and asks DeepSeek in Chat Completions whatever it was to be asked in.
    return recording.provider != "ollama" and (recording.wire, recording.provider) != ("responses", "deepseek")


@dataclass(frozen=True)
class _Loss:
    what: frozenset[str]
    reason: str
    where: Callable[[Recording, Said | Refused], bool]


def _has(said: Said | Refused, *kinds: str) -> bool:
    return isinstance(said, Said) and any(piece[0] in kinds for piece in said.pieces)


def _written(recording: Recording) -> str:
    return recording.sse or str(recording.response)


_LOSSES = (
    _Loss(frozenset({"id"}), "gives an id of its own", lambda recording, _: recording.wire == "anthropic"),
    _Loss(
        frozenset({"model"}),
        "gives a stream the name that was asked for",
        lambda recording, _: recording.streamed and recording.wire in {"anthropic", "chat"},
    ),
    _Loss(
        frozenset({"usage"}),
        "estimates how much of a reply was thinking where the provider does not say it",
        lambda recording, said: recording.wire == "anthropic" and _has(said, "thinking"),
    ),
    _Loss(
        frozenset({"usage"}),
        "counts what an adviser used, who is another model, with the rest",
        lambda recording, _: "advisor_message" in _written(recording),
    ),
    _Loss(
        frozenset({"pieces"}),
        "joins all the words, and puts the blocks of the provider's tools beside them in another form",
        lambda recording, said: recording.wire == "anthropic" and _has(said, "own"),
    ),
    _Loss(
        frozenset({"cited"}),
        "does not say which words something is cited for",
        lambda recording, said: recording.wire == "anthropic" and isinstance(said, Said) and bool(said.cited),
    ),
    _Loss(
        frozenset({"pieces"}),
        "drops pieces of a stream in which there is nothing but encrypted reasoning",
        lambda recording, said: recording.provider == "openrouter" and recording.streamed and _has(said, "own"),
    ),
    _Loss(
        frozenset({"cited"}),
        "does not say which words Google's sources are for",
        lambda recording, said: recording.wire == "gemini" and isinstance(said, Said) and bool(said.cited),
    ),
    _Loss(
        frozenset({"pieces"}),
        "drops code that Google's models wrote and ran",
        lambda recording, said: recording.wire == "gemini" and _has(said, "own"),
    ),
    _Loss(
        frozenset({"error"}),
        "can't read an error in the middle of Groq's stream, whose code is a word",
        lambda recording, said: recording.provider == "groq" and recording.streamed and isinstance(said, Refused),
    ),
    _Loss(
        frozenset({"error"}),
        "can't read an answer of Groq's without a service tier",
        lambda recording, said: (
            recording.provider == "groq"
            and not recording.streamed
            and isinstance(said, Said)
            and "service_tier" not in recording.response
        ),
    ),
)


REASONS = frozenset(loss.reason for loss in _LOSSES)
"""What litellm loses or changes."""


def lost(recording: Recording) -> dict[str, str]:
    """Say what litellm may have lost or changed of a recording, and why."""
    said = said_in(recording)
    return {name: loss.reason for loss in _LOSSES if loss.where(recording, said) for name in loss.what}


async def _table(file: Path) -> None:
    recordings = load(file)
    columns = ("provider", "wire", "count", "native", "litellm", "same")
    counts: dict[tuple[str, str], Counter[str]] = {}
    reasons: Counter[str] = Counter()
    async with serve_recordings(recordings) as server:
        for recording in recordings:
            count = counts.setdefault((recording.provider, recording.wire), Counter())
            count["count"] += 1
            found: dict[str, dict[str, tuple[object, object]]] = {}
            for route in ("native", "litellm"):
                if spoken(recording, route):
                    count[f"{route} asked"] += 1
                    found[route] = different(await ask(server, recording, route), recording)
                    excused = lost(recording) if route == "litellm" else {}
                    unexcused = found[route].keys() - excused.keys()
                    count[route] += not unexcused
                    reasons.update(excused[name] for name in found[route].keys() & excused.keys())
                    for name in unexcused:
                        came, expected = found[route][name]
                        print(f"{recording.name}: {route}: {name}\n  came     {came!r}\n  expected {expected!r}")
            if len(found) == 2:
                count["both"] += 1
                count["same"] += not (found["native"].keys() | found["litellm"].keys()) - {"id"}
    print(("{:<14}{:<12}{:>7}{:>10}{:>10}{:>10}").format(*columns))
    for (provider, wire), count in sorted(counts.items()):
        cells = [f"{count[name]}/{count[of]}" if count[of] else "-" for name, of in _RATIOS]
        print(f"{provider:<14}{wire:<12}{count['count']:>7}" + "".join(f"{cell:>10}" for cell in cells))
    print(
        "\nnative, litellm: as recorded, of those asked (litellm but for what it is known to lose, below); same: by both, ids apart"
    )
    for reason, number in reasons.most_common():
        print(f"{number:>5}  litellm {reason}")


_RATIOS = (("native", "native asked"), ("litellm", "litellm asked"), ("same", "both"))


if __name__ == "__main__":
    anyio.run(_table, Path(sys.argv[1]))
