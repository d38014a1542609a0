"""A server with scripted agents in a process of its own, for the tests of its page: to be watched, killed and started again.

It prints a line of JSON when it takes requests: its address, a key, and the link that logs a browser in.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from hypercorn.asyncio import serve  # pyright: ignore[reportUnknownVariableType]
from hypercorn.config import Config, Sockets

from agentcore import Agent, Conversation, FileStore
from agentcore.display import (
    CommandBlock,
    ConversationBlock,
    DiffBlock,
    DisplayBlock,
    DisplayTask,
    ExcerptBlock,
    MarkdownBlock,
    ProgressBlock,
    TableBlock,
    TasksBlock,
    UnknownDisplay,
)
from agentcore.messages import ToolResultBlock
from agentcore.testing import Gate, Request, ScriptedLLM, ScriptLine, call, calls, say
from agentcore.tools import ToolContext, ask_user, tool
from agentcore.usage import Usage
from agentcore_serve import ServeSettings, create_app
from serving import open_listener

ANSWER = """## What changed

The parser read `--port` twice. It reads it **once** now, and the *default* stays:

1. `cli.py` has the option
2. `server.py` takes it as an argument
   - a test covers both

| File | Lines |
| --- | --- |
| `cli.py` | +4 -9 |

```python
def main(port: int = 8420) -> None:
    serve(port)
```

See [the guide](https://example.invalid/guide)."""

HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\n\n"
    "[a link](javascript:window.hacked=3) [a page](https://example.invalid/x) ![a picture](https://example.invalid/p.png)\n\n"
    "\x1b[31mred\x1b[0m \u202egnp.exe\u202c \u2066isolated\u2069 nul\x00bell\x07\n\n"
    "# <b>heading</b>\n\n- <i>item</i>\n"
)

_BLOCKS: tuple[DisplayBlock, ...] = (
    MarkdownBlock(text="read `cli.py`", place="heading"),
    MarkdownBlock(text="Some *words* of the tool."),
    CommandBlock(command="pytest -q", exit_code=1, output="FAILED test_cli.py\n1 failed in 0.12s"),
    DiffBlock(
        path="src/cli.py",
        diff='@@ -1,3 +1,3 @@\n import serve\n-port = parse("--port")\n+port = options.port\n run(port)',
    ),
    ExcerptBlock(path="src/cli.py", first=10, text="def main() -> None:\n    serve(port)"),
    TableBlock(columns=("name", "size"), rows=(("cli.py", "4 KB"), ("server.py", "12 KB"))),
    TasksBlock(
        tasks=(
            DisplayTask(title="Read the code", status="done"),
            DisplayTask(title="Fix the option", status="in_progress", notes="the default stays"),
            DisplayTask(title="Write a test"),
        )
    ),
    ProgressBlock(label="Indexing", done=0.4),
    ConversationBlock(conversation_id="sub-agent-1", title="A sub-agent"),
    UnknownDisplay(kind="hologram", text="words of a newer block"),
)


@tool(resources=(), display_answer=lambda action, answer: _BLOCKS)
async def look() -> str:
    """Look at the code."""
    return "looked"


@tool(resources=())
async def deploy(target: str, command: str = "make deploy") -> str:
    """Deploy it."""
    return f"deployed to {target} by {command}"


@tool(resources=())
async def shout(text: str) -> str:
    """Return what is hostile."""
    return text + "\n" + "x" * 200_000 + "\n\x1b]0;title\x07\x1b[2Jend"


@tool(resources=())
async def listen(ctx: ToolContext) -> str:
    """Put out some lines, and wait."""
    await ctx.progress("line one\n")
    await ctx.progress("line two\n")
    await GATE.hold_here()
    return "line one\nline two\nline three"


class OpenGate(Gate):
    """A gate for tools as well."""

    async def hold_here(self) -> None:
        """Wait until it is open."""
        held: Any = self.hold("")
        await held(None)


GATE = OpenGate()
USAGE = Usage(input_tokens=12_345, output_tokens=678, cache_read_tokens=9_000)


def reply(request: Request) -> ScriptLine:
    """Answer by the person's last message and the number of answers of tools since then."""
    asked, done = "", 0
    for message in request.messages:
        if message.role == "user":
            # What was said one after the other is one message.
            asked, done = message.text.splitlines()[-1], 0
        done += sum(isinstance(block, ToolResultBlock) for block in message.content)
    first, then = SCRIPTS.get(asked.split()[0], (None, None))
    line = then if done else first
    if line is None:
        last = request.answers[-1] if request.answers else "Hello."
        return say(f"Done: {last[:100]}", usage=USAGE)
    return line


def open_gate(request: Request) -> ScriptLine:
    """Let the slow ones go on."""
    del request
    GATE.open()
    return say("It is open.")


DEPLOY = calls(call("deploy", target="production"), text="I deploy it now.", thinking="It is ready.", usage=USAGE)
SCRIPTS: dict[str, tuple[ScriptLine | None, ScriptLine | None]] = {
    "deploy": (DEPLOY, None),
    "twice": (calls(call("deploy", target="here"), call("deploy", target="there")), None),
    "ask": (call("ask_user", text="Which *port*?", options=["8420", "9000"]), None),
    "number": (call("ask_user", text="How many?", answer_schema={"type": "integer"}), None),
    "look": (calls(call("look"), text="Let me look at the code.", usage=USAGE), say(ANSWER, usage=USAGE)),
    "slow": (GATE.hold(say("These words come one by one, and the last one waits."), after=8), None),
    "listen": (call("listen"), None),
    "open": (open_gate, None),
    "hostile": (calls(call("shout", text=HOSTILE), text=HOSTILE), say(HOSTILE)),
    "huge": (say("y" * 5_000_000 + " end"), None),
}
"""By the first word of what is asked: the first reply, and the one after a tool's answer."""


AGENT = Agent(llm=ScriptedLLM(reply, record=False), tools=[look, deploy, shout, listen, ask_user])


async def send(folder: Path, conversation_id: str, count: int) -> None:
    """Send messages, to a conversation that no server has open."""
    store = FileStore(folder / "store", durability="flush")
    async with Conversation(AGENT, id=conversation_id, store=store) as conversation:
        for number in range(count):
            await conversation.send(f"message {number}")


async def main(folder: Path, port: int) -> None:
    """Serve until the process is ended."""
    settings = ServeSettings(store=folder / "store", root=folder)
    app = create_app(settings, agents={"coder": AGENT})
    listener = open_listener(port=port)

    class OnListener(Config):
        def create_sockets(self) -> Sockets:
            return Sockets([], [listener], [])

    async with app.lifespan():
        key = await app.make_first_key()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        line = {
            "url": url,
            "key": None if key is None else key.get_secret_value(),
            "link": await app.make_page_link(url),
        }
        print(json.dumps(line), flush=True)

        async def without_lifespan(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "lifespan":
                await app(scope, receive, send)
                return
            for _ in range(2):
                await send({"type": f"{(await receive())['type']}.complete"})

        await serve(without_lifespan, OnListener(), mode="asgi")


if __name__ == "__main__":
    if sys.argv[2] == "--messages":
        anyio.run(send, Path(sys.argv[1]), sys.argv[3], int(sys.argv[4]))
    else:
        anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
