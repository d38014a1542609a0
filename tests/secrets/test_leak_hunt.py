"""A hunt for leaks: values in every encoding that is promised, in every place where text comes in, and cut at every limit.

Nothing that goes out (the log on disk, its exports, requests to the model, deltas, outputs in files, errors, the program's log) may
hold six characters in a row of them. What is not promised stands as a table in docs/concepts/secrets.md.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
import shlex
import string
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from anyio.lowlevel import checkpoint

from agentcore import Agent, AlwaysConfirm, Conversation, FileStore, NeverConfirm, ToolContext
from agentcore.cli.export import export_log
from agentcore.cli.settings import Settings
from agentcore.errors import BadRequest, RunError
from agentcore.llm import LLM
from agentcore.messages import ToolCallBlock
from agentcore.testing import ScriptedLLM, calls, say, serve_provider
from agentcore.tools import tool
from agentcore_tools import file_editor_tool, grep_tool, run_tool, terminal_tool
from rounds import rounds, some_quick

WORDS = string.ascii_letters + string.digits
LOOPS = 2


def token(chance: random.Random) -> str:
    return "".join(chance.choices(WORDS + "_-", k=46))


def password(chance: random.Random) -> str:
    """Make a value that every encoding writes in another way."""
    return "".join("".join(chance.choices(WORDS, k=9)) + odd for odd in ("'", '"', "\\", "ü€", "/", " & ", "<>", "%+="))


def private_key(chance: random.Random) -> str:
    lines = ["".join(chance.choices(WORDS + "+/", k=64)) for _ in range(4)]
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""])


VALUES = (token, password, private_key)


def base64_at(offset: int, encode: Callable[[bytes], bytes]) -> Callable[[str], str]:
    return lambda value: encode(b"\xfb\xf0\xff"[:offset] + value.encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "crlf": lambda value: value.replace("\n", "\r\n"),
    "json": json.dumps,
    "json, not ascii": lambda value: json.dumps(value, ensure_ascii=False),
    "json in json": lambda value: json.dumps(json.dumps(value)),
    "json in json, not ascii": lambda value: json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False),
    "json in json, mixed": lambda value: json.dumps(json.dumps(value, ensure_ascii=False)),
    "repr": repr,
    "ascii": ascii,
    "repr of bytes": lambda value: repr(value.encode()),
    "repr in repr": lambda value: repr(repr(value)),
    "percent": quote,
    "percent, all": lambda value: quote(value, ""),
    "percent, plus": quote_plus,
    "shell": lambda value: value.replace("'", "'\\''"),
    "shell, by Python": shlex.quote,
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    **{f"base64 at {offset}": base64_at(offset, base64.b64encode) for offset in range(3)},
    **{f"base64 for addresses at {offset}": base64_at(offset, base64.urlsafe_b64encode) for offset in range(3)},
}


def parts_of(name: str, value: str, written: str) -> set[str]:
    """Return the runs of letters and digits of a written value that may stand nowhere."""
    # Ids are hexadecimal too, and meet one of six by chance.
    size = 12 if name.lower() == "hex" else 6
    texts = [written, *value.splitlines()]
    for line in (value.splitlines()[0], value.splitlines()[-1]):
        if line.startswith("-----"):
            texts = [text.replace(line, " ") for text in texts]
    runs = {text[at : at + size] for text in texts for at in range(len(text) - size + 1)}
    if name.startswith("base64"):
        runs -= {written[at : at + size] for at in (0, 1, 2, *range(len(written) - size - 4, len(written)))}
    return {run for run in runs if len(run) == size and run.isalnum() and run.isascii()}


@tool
async def echo(text: str) -> str:
    """Answer with the text."""
    return text


@tool
async def count(n: int) -> str:
    """Count."""
    return str(n)


@tool
async def fail(text: str) -> str:
    """Fail with the text."""
    raise ValueError(text)


@tool
async def report(text: str, ctx: ToolContext) -> str:
    """Show the text while it runs, in pieces, and keep it in a file."""
    for at in range(0, len(text), 7):
        await ctx.progress(text[at : at + 7])
    return await ctx.spool("kept.txt", text)


async def hunt(seed: int, encoding: str, folder: Path, log: pytest.LogCaptureFixture, *, long: bool) -> str:
    """Take a value in one encoding through all places; return the parts that came out."""
    chance = random.Random(seed)
    value = VALUES[seed % len(VALUES)](chance)
    written = ENCODINGS[encoding](value)

    def around(limit: int) -> str:
        """Put it over a cut: at the limit itself, or in the middle, where what is omitted begins or ends."""
        place = chance.choice((limit, limit // 2)) - chance.randrange(len(written) + 120)
        return "." * max(place, 0) + written + "." * limit

    folder.mkdir()
    (folder / "file.txt").write_text(f"one {written} two\nthree {around(500)}\n")

    def asks(number: int, name: str, arguments: dict[str, object] | str) -> ToolCallBlock:
        return ToolCallBlock.model_validate({"id": f"call-{number}", "name": name, "arguments": arguments})

    made: list[tuple[str, dict[str, object] | str]] = [
        ("echo", {"text": f"a {written} b"}),
        ("echo", {"text": around(30_000)}),
        ("fail", {"text": f"a {written} b"}),
        ("fail", {"text": around(30_000)}),
        ("report", {"text": f"a {written} b"}),
        ("count", {"n": f"a {written} b"}),
        ("count", {"n": around(200)}),
        ("count", {"n": around(2_000)}),
        ("count", json.dumps({"n": around(2_000)})[:-1]),
        (f"no {written}", {"n": around(2_000)}),
        ("file_editor", {"command": "view", "path": "file.txt"}),
        # The folder in a path is a part of a value that has a slash.
        ("file_editor", {"command": "view", "path": "no folder" if "/" in written else f"no {written}"}),
        ("grep", {"pattern": "one|three"}),
        ("run", {"command": ["cat", "file.txt"]}),
    ]
    if long:
        made.append(("terminal", {"command": f"cat file.txt; cat << 'EOF'\n{written}\nEOF"}))
    chance.shuffle(made)
    llm = ScriptedLLM(
        [
            calls(
                *(asks(number, *each) for number, each in enumerate(made)),
                text=f"words {written}",
                thinking=f"thought {written}",
                stop_reason=f"why {written}",
            ),
            say(f"done {around(200)}"),
            calls(asks(99, "echo", {"text": written})),
            say(f"aside {written}"),
            BadRequest(f"refused {written}"),
        ]
    )
    tools = [
        echo,
        count,
        fail,
        report,
        file_editor_tool(),
        grep_tool(),
        run_tool(),
        *([terminal_tool()] if long else []),
    ]
    store = FileStore(folder / "conversations")
    out: list[str] = []
    async with Conversation(
        Agent(llm=llm, tools=tools, stuck=None), workspace=str(folder), store=store, id="c", secrets={"S": value}
    ) as conversation:
        deltas = conversation.deltas()
        await conversation.run(f"use {written}")
        await conversation.set_title(f"about {written}")
        await conversation.set_tags({"tag": written})
        await conversation.set_policy(AlwaysConfirm())
        await conversation.run("again")
        await conversation.reject(f"not {written}")
        out.append(await conversation.ask(f"what is {written}?"))
        await conversation.set_policy(NeverConfirm())
        with pytest.raises(RunError) as refused:
            await conversation.run("more")
        out.append(str(refused.value))
        private = Path(await conversation.workspace.private_folder("c"))
        out += [file.read_text(errors="replace") for file in private.iterdir() if file.is_file()]
        if long:
            out.append(await refused_by_a_provider(value, around(2_000)))
    by_kind: dict[str, list[str]] = {}
    async for delta in deltas:
        by_kind.setdefault(delta.type, []).append(delta.text)
        out.append(delta.tool_name or "")
    out += ["".join(texts) for texts in by_kind.values()]
    for form in ("jsonl", "markdown"):
        exported = folder / f"exported.{form}"
        settings = Settings(home=str(folder))
        await export_log("c", settings, form=form, output=str(exported), force=True)
        out.append(exported.read_text())
    out += [file.read_text() for file in (folder / "conversations").rglob("*") if file.is_file()]
    out += [message.model_dump_json() for request in llm.requests for message in request.messages]
    out += [record.getMessage() for record in log.records]
    log.clear()
    whole = "\n".join(out)
    places = sorted(place for part in parts_of(encoding, value, written) if (place := whole.find(part)) >= 0)
    return "" if not places else f"{len(places)} parts, as in {whole[max(places[0] - 300, 0) : places[0] + 200]}"


async def refused_by_a_provider(value: str, text: str) -> str:
    async with serve_provider([BadRequest(text)], api_key="k") as provider:
        llm = LLM(model="any", base_url=provider.base_url, api_key="k", num_retries=0)
        async with Conversation(Agent(llm=llm), secrets={"S": value}) as conversation:
            with pytest.raises(RunError) as refused:
                await conversation.run("go")
            return "\n".join([str(refused.value), *(each.model_dump_json() for each in conversation.state.events)])


@pytest.mark.parametrize("encoding", some_quick(ENCODINGS, 12))
async def test_no_part_of_a_value_in_a_promised_encoding_comes_out(
    encoding: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "agentcore")
    number = list(ENCODINGS).index(encoding)
    kind = VALUES.index(private_key if number % 4 == 0 else password)
    assert not await hunt(number * len(VALUES) + kind, encoding, tmp_path / "hunt", caplog, long=False)


@pytest.mark.slow
async def test_a_long_hunt_finds_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "agentcore")
    end = time.monotonic() + rounds(300) / LOOPS
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seeds from {seed}")
    for encoding in itertools.cycle(ENCODINGS):
        found = await hunt(seed, encoding, tmp_path / str(seed), caplog, long=True)
        assert not found, f"seed {seed}, {encoding}: {found}"
        seed += 1
        if time.monotonic() > end:
            break
        await checkpoint()
