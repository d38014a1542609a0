from __future__ import annotations

from collections import deque

import anyio
import anyio.lowlevel
import pytest

from agentcore.testing.workspace_process_contract import refused
from agentcore.workspace import CommandResult, Output, run_to_end


def test_output_that_was_cut_shows_how_much_is_missing_and_no_half_characters() -> None:
    snowman = "\N{SNOWMAN}".encode()
    output = Output(head=b"a" + snowman + snowman[:2], tail=snowman[1:] + snowman + b"z", omitted=1000)
    assert output.text == "a\N{SNOWMAN}\n[... 1000 bytes omitted ...]\n\N{SNOWMAN}z"
    assert output.size == 1 + 3 + 2 + 1000 + 2 + 3 + 1


def test_output_that_is_not_text_is_shown_as_far_as_it_goes() -> None:
    assert Output(head=b"a\xffb").text == "a\N{REPLACEMENT CHARACTER}b"
    cut = Output(head=b"a\xffb", tail=b"\x80" * 5 + b"c", omitted=7).text
    assert cut.startswith("a\N{REPLACEMENT CHARACTER}b\n[")
    assert cut.endswith("]\n" + "\N{REPLACEMENT CHARACTER}" * 2 + "c")


def test_a_result_travels_as_json() -> None:
    result = CommandResult(
        exit_code=3, out=Output(head=bytes(range(256))), err=Output(head=b"a", tail=b"\xff", omitted=2)
    )
    assert CommandResult.model_validate_json(result.model_dump_json()) == result
    assert result.truncated


class Played:
    """A process of a workspace that somebody else made: `run_to_end` needs no more of it than the protocol."""

    pid = 1
    returncode: int | None = None

    def __init__(self, *output: bytes | Exception) -> None:
        self.output = deque(output)
        self.input = b""
        self.done = anyio.Event()

    async def send(self, data: bytes) -> None:
        self.input += data

    async def send_eof(self) -> None:
        self.input += b"<eof>"

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        if not self.output:
            self.done.set()
            raise anyio.EndOfStream
        match self.output.popleft():
            case bytes() as data:
                return data
            case error:
                raise error

    async def receive_stderr(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        raise anyio.EndOfStream

    async def signal(self, signal: int) -> None: ...

    async def interrupt(self, *, started_within: float | None = None) -> bool:
        return True

    async def terminate(self) -> None: ...

    async def resize(self, columns: int, rows: int) -> None: ...

    async def wait(self) -> int:
        await self.done.wait()
        return 5


@pytest.mark.parametrize("limit", [0, 1, 2, 9, 10, 11, 100])
@pytest.mark.parametrize("piece", [1, 3, 10])
async def test_any_limit_keeps_the_beginning_and_the_end(limit: int, piece: int) -> None:
    data = b"0123456789"
    process = Played(*(data[start : start + piece] for start in range(0, len(data), piece)))
    with anyio.fail_after(30):
        result = await run_to_end(process, stdin=b"in", max_output=limit)
    assert (result.exit_code, process.input) == (5, b"in<eof>")
    assert result.out.size == 10
    if limit >= 10:
        assert result.out == Output(head=data)
    else:
        head = limit - limit // 2
        assert result.out == Output(head=data[:head], tail=data[10 - limit // 2 :], omitted=10 - limit)


async def test_a_connection_that_breaks_is_one_error_and_no_group() -> None:
    broken = ConnectionResetError("the engine is gone")
    with anyio.fail_after(30):
        assert (
            await refused(ConnectionResetError, run_to_end(Played(b"x", broken), stdin=None, max_output=10)) is broken
        )


async def test_a_limit_below_nothing_is_refused() -> None:
    await refused(ValueError, run_to_end(Played(), stdin=None, max_output=-1))
