"""A provider of models in a process of its own: what it answers follows from the request alone, whichever server asks.

The first message of a conversation is its name and how many calls it makes, as in "c7 6". They are made by turns in the server and in
the client; each writes a line of its own.
"""

from __future__ import annotations

import json
import sys

import anyio

from agentcore.testing import Request, call, say, serve_provider
from agentcore.testing.script import ScriptLine


def reply(request: Request) -> ScriptLine:
    """Answer a request."""
    name, calls = next(message for message in request.messages if message.role == "user").text.split()[:2]
    number = sum(message.role == "tool" for message in request.messages)
    if number >= int(calls):
        return say(f"{name} is done.")
    if number % 2:
        return call("note", text=f"{name} {number}")
    return call("run", command=f"echo {name} {number} >> {sys.argv[1]}/there")


async def main() -> None:
    """Serve until killed."""
    async with serve_provider(reply) as provider:
        print(json.dumps({"url": provider.base_url}), flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main)
