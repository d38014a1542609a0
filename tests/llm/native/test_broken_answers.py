"""Answers that were changed on their way, on each wire: what still says the same is the same reply, what does not is an error.

Never is a part of a reply taken for the whole, nothing hangs, and a provider's words are not lost. Each wire's answer is
changed at random in a few ways here, and in thousands in the long run (`-m slow`).
"""

from __future__ import annotations

import gzip
import json
import random
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import pytest
from anyio.abc import SocketStream

from agentcore.errors import ModelError
from agentcore.llm import LLM, Reply
from anthropic_exchanges import ANTHROPIC
from chat_exchanges import CHAT
from exchanges import stream_of
from gemini_exchanges import EXCHANGES
from model_route import KEY, read
from raw_server import serve_raw
from responses_exchanges import RESPONSES
from rounds import rounds

Json = dict[str, Any]
Random = random.Random

WORDS = "the upstream is on fire"


def streams() -> dict[str, list[Json]]:
    """A stream of thinking, words and calls on each wire."""
    gemini = {exchange.name: exchange.events for exchange in EXCHANGES}
    return {
        **{
            exchange.wire: stream_of(exchange)
            for exchange in (*CHAT, *ANTHROPIC, *RESPONSES)
            if exchange.name == "thinking_words_and_a_call"
        },
        "gemini": [
            *gemini["thoughts_before_words"][:2],
            *gemini["words_in_pieces"][:2],
            *gemini["calls_at_once_of_which_the_first_is_signed"][1:],
        ],
    }


WIRES: dict[str, Json] = {
    "chat": {"model": "openai/m", "api_mode": "chat"},
    "anthropic": {"model": "anthropic/claude-sonnet-4-5"},
    "responses": {"model": "openai/m", "api_mode": "responses"},
    "gemini": {"model": "gemini/gemini-2.5-flash"},
}

STREAMS = streams()

Outcome = Literal["same", "same or error", "error", "error with words", "any"]


@dataclass(frozen=True)
class Changed:
    """What a server sends, and what may come of it."""

    how: str
    outcome: Outcome
    pieces: list[bytes]


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Without a length, the body ends with the connection: nobody can tell a cut from an end."""
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


STREAM = "Content-Type: text/event-stream"


def lines(events: list[Json], *, named: bool = True) -> list[str]:
    """Write each event as its lines."""
    return [
        (f"event: {event['type']}\n" if named and "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]


class Changes:
    """Changes one wire's stream at random."""

    def __init__(self, wire: str, seed: int) -> None:
        self.wire = wire
        # Of its own, to be changed.
        self.events = deepcopy(STREAMS[wire])
        self.random = Random(f"{wire} {seed}")

    def written(self) -> list[str]:
        return lines(self.events) + (["data: [DONE]\n\n"] if self.wire == "chat" else [])

    def one(self) -> Changed:
        cut = (self.cut_bytes, self.cut_events, self.short)
        changes = (self.keep, self.keep, *cut, self.fail, self.spoil, self.replace, self.shuffle, self.retype)
        return self.random.choice(changes)()

    def pieces(self, data: bytes) -> list[bytes]:
        """Cut bytes as a network may."""
        size = self.random.choice([1, 7, 61, 100_000])
        return [data[at : at + size] for at in range(0, len(data), size)] or [b""]

    def streamed(self, how: str, outcome: Outcome, text: str) -> Changed:
        return Changed(how, outcome, [http(b"", STREAM), *self.pieces(text.encode(errors="replace"))])

    def keep(self) -> Changed:
        """Change what says nothing."""
        ways = "crlf cr bom comments blank-data blank-lines no-space no-names ids pretty gzip plain"
        how = self.random.choice(ways.split())
        text = self.written()
        match how:
            case "crlf" | "cr":
                text = [part.replace("\n", "\r\n" if how == "crlf" else "\r") for part in text]
            case "bom":
                text[0] = "\ufeff" + text[0]
            case "comments":
                text = [f": {'k' * self.random.randrange(3000)}\n\n{part}" for part in text]
            case "blank-data":
                text = [f"data:\n\ndata: \n\n{part}" for part in text]
            case "blank-lines":
                text = ["\n\n\n" + part for part in text]
            case "no-space":
                text = [part.replace("data: ", "data:") for part in text]
            case "no-names":
                text = lines(self.events, named=False) + text[len(self.events) :]
            case "ids":
                text = [f"id: {number}\nretry: 5\n{part}" for number, part in enumerate(text)]
            case "pretty":
                pretty = [json.dumps(event, indent=1).replace("\n", "\ndata: ") for event in self.events]
                text = [f"data: {each}\n\n" for each in pretty] + text[len(self.events) :]
            case "gzip":
                packed = gzip.compress("".join(text).encode())
                return Changed(how, "same", [http(b"", STREAM, "Content-Encoding: gzip"), *self.pieces(packed)])
            case _:
                pass
        return self.streamed(how, "same", "".join(text))

    def cut_bytes(self) -> Changed:
        data = "".join(self.written()).encode()
        end = self.random.randrange(len(data))
        return Changed(f"cut at byte {end}", "same or error", [http(b"", STREAM), *self.pieces(data[:end])])

    def cut_events(self) -> Changed:
        text = self.written()
        end = self.random.randrange(len(text))
        return self.streamed(f"cut at event {end}", "same or error", "".join(text[:end]))

    def short(self) -> Changed:
        """Send less than was announced."""
        data = "".join(self.written()).encode()
        end = self.random.randrange(len(data) // 2)
        if self.random.random() < 0.5:
            head = http(b"", STREAM, f"Content-Length: {len(data)}")
            return Changed(f"short of its length at {end}", "error", [head, *self.pieces(data[:end])])
        head = http(b"%x\r\n" % len(data), STREAM, "Transfer-Encoding: chunked")
        return Changed(f"broken chunk at {end}", "error", [head, *self.pieces(data[:end])])

    def fail(self) -> Changed:
        """Report an error in the middle."""
        error = self.random.choice(
            [
                {"error": {"message": WORDS}},
                {"error": {"message": WORDS, "code": 503, "status": "UNAVAILABLE"}},
                {"error": {"message": WORDS, "type": "overloaded_error"}, "type": "error"},
                {"error": WORDS},
            ]
        )
        text = self.written()
        at = self.random.randrange(len(self.events))
        text[at:] = [f"data: {json.dumps(error)}\n\n"]
        return self.streamed(f"error at {at}: {error}", "error with words", "".join(text))

    def spoil(self) -> Changed:
        """Put something in the middle that is no event of this wire, and nothing after it."""
        text = self.written()
        # The last events may come after all was said.
        at = self.random.randrange(len(self.events) - 2)
        spoiled = self.random.choice(["data: {oops", "<html>Bad gateway</html>", 'data: ["odd"]', "data: 7", "\0\0"])
        return self.streamed(f"{spoiled!r} at {at}", "error", "".join([*text[:at], f"{spoiled}\n\n"]))

    def replace(self) -> Changed:
        """Send something else with status 200, or another status."""
        told = json.dumps(
            self.random.choice([{"error": {"message": WORDS}}, {"message": WORDS}, {"detail": WORDS}])
        ).encode()
        as_json = "Content-Type: application/json"
        plain: list[tuple[str, Outcome, bytes]] = [
            ("error JSON", "error with words", http(told, as_json)),
            ("error JSON as a stream", "error with words", http(told, STREAM)),
            ("page", "error with words", http(f"<html>{WORDS}</html>".encode(), "Content-Type: text/html")),
            ("nothing", "error", http(b"", STREAM)),
            ("no content", "error", http(b"", status="204 No Content")),
            ("empty object", "error", http(b"{}", as_json)),
            ("half of an object", "error", http(told[: len(told) // 2], as_json)),
            ("another interface", "error", http(b'{"object": "list", "data": []}', as_json)),
            ("redirect", "error", http(b"", "Location: /elsewhere", status="307 Temporary Redirect")),
            ("broken gzip", "error", http(b"\x1f\x8b\x08nothing", STREAM, "Content-Encoding: gzip")),
            ("overloaded", "error with words", http(told, as_json, status="503 Service Unavailable")),
        ]
        how, outcome, answer = self.random.choice(plain)
        return Changed(how, outcome, [answer])

    def shuffle(self) -> Changed:
        """Lose, repeat or exchange events: some wires can't tell, but none may crash or hang."""
        text = self.written()
        at, other = self.random.randrange(len(text)), self.random.randrange(len(text))
        how = self.random.choice(["lost", "twice", "exchanged"])
        if how == "lost":
            del text[at]
        elif how == "twice":
            text.insert(at, text[at])
        else:
            text[at], text[other] = text[other], text[at]
        return self.streamed(f"{how} {at} {other}", "any", "".join(text))

    def retype(self) -> Changed:
        """Put a value of another type somewhere: what comes may be odd, but it is a reply that can be stored, or an error."""
        event = self.random.choice(self.events)
        path: list[str | int] = []
        while True:
            place: Any = event
            for step in path[:-1]:
                place = place[step]
            inside = place[path[-1]] if path else event
            if not path or (isinstance(inside, dict | list) and inside and self.random.random() < 0.8):
                keys: list[str | int] = list(inside) if isinstance(inside, dict) else list(range(len(inside)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                path.append(self.random.choice(keys))
                continue
            value = self.random.choice(
                [None, True, 7, -1.5, "", "odd", [], [None], ["odd"], {}, {"odd": None}, "\ud800"]
            )
            place[path[-1]] = value
            return self.streamed(f"{value!r} at {path}", "any", "".join(self.written()))


async def try_all(wire: str, seeds: range) -> None:
    changed: Changed | None = None

    async def act(connection: SocketStream) -> bool:
        assert changed is not None
        for piece in changed.pieces:
            await connection.send(piece)
        return False

    wrong: list[str] = []
    async with serve_raw(act) as server:
        given = {"base_url": server.url, "api_key": KEY, "num_retries": 0} | WIRES[wire]
        llm = LLM.model_validate(given)

        async def ask() -> Reply | ModelError:
            with anyio.fail_after(60):
                try:
                    return (await read(llm))[1]
                except ModelError as error:
                    return error

        changed = Changed("as it is", "same", [http("".join(Changes(wire, 0).written()).encode(), STREAM)])
        whole = await ask()
        assert isinstance(whole, Reply)
        assert whole.stop_reason == "tool_calls"
        for seed in seeds:
            changed = Changes(wire, seed).one()
            answer = await ask()
            if not _is_right(answer, whole, changed.outcome):
                wrong.append(f"seed {seed}, {changed.how}: {changed.outcome} expected, and it was {answer!r}")
    assert wrong == []


def _is_right(answer: Reply | ModelError, whole: Reply, outcome: Outcome) -> bool:
    if isinstance(answer, Reply):
        assert Reply.model_validate_json(answer.model_dump_json()) == answer
        same = (answer.message, answer.stop_reason) == (whole.message, whole.stop_reason)
        return outcome == "any" or (same and outcome in {"same", "same or error"})
    if outcome == "error with words":
        return WORDS in str(answer)
    return outcome != "same"


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 50), marks=pytest.mark.slow)], ids=str)
async def test_a_changed_answer_is_the_same_reply_or_an_error(wire: str, seeds: range) -> None:
    await try_all(wire, seeds)


@pytest.mark.slow  # thousands of answers
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("first", range(1000, 3000, 500))
async def test_thousands_of_changed_answers_are_each_the_same_reply_or_an_error(wire: str, first: int) -> None:
    await try_all(wire, range(first, first + rounds(500)))
