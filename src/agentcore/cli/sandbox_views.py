"""`agentcore sandbox views`: the desktop, editor or terminal of a box that runs, in a browser."""

from __future__ import annotations

import sys

import anyio

from agentcore.cli.console import DIM, make_console, print_line, write_json
from agentcore.cli.failures import UsageError


async def serve_views(box: str, *, json: bool) -> int:
    """Print the addresses of a box's views, and serve them until Ctrl-C.

    Args:
        box: The id of the box.
        json: Print each as JSON, and nothing else.

    Raises:
        UsageError: The image of the box offers no views.
    """
    from agentcore_sandbox.docker.attach import AttachedBox  # noqa: PLC0415 not needed by other commands
    from agentcore_sandbox.workspace import BoxWorkspace  # noqa: PLC0415 the same

    async with BoxWorkspace(AttachedBox(box)) as workspace:
        addresses = await workspace.views()
        if not addresses:
            raise UsageError(
                f"The image of the box {box} has no views. Build one that has: agentcore sandbox build --with desktop,editor,terminal"
            )
        console = make_console()
        for name, url in sorted(addresses.items()):
            if json:
                write_json({"name": name, "url": url})
            else:
                print_line(console, f"{name:<10}  {url}")
        if not json:
            print_line(console, "Each opens once, within a minute. Ctrl-C ends them.", DIM)
        sys.stdout.flush()
        await anyio.sleep_forever()
    return 0
