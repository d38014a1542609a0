"""`agentcore sandbox build`: an image for boxes, with a desktop, an editor or a terminal."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from agentcore.cli.console import DIM, make_console, print_line, write_json
from agentcore.cli.failures import UsageError
from agentcore.errors import MissingExtra


async def build_sandbox_image(
    base: str, parts: str, tag: str | None, network: Literal["default", "host"], *, json: bool
) -> int:
    """Build an image, print its name, and return the exit code.

    Args:
        base: The value of --base.
        parts: The value of --with.
        tag: The value of --tag.
        network: The value of --network.
        json: Print the image as JSON, and nothing of the build.

    Raises:
        MissingExtra: The parts for Docker are not installed.
        UsageError: There is no such part, or the name cannot be one.
    """
    if find_spec("aiodocker") is None:
        raise MissingExtra("agentcore sandbox build", "docker")
    from agentcore_sandbox import images  # noqa: PLC0415 not needed by other commands

    console = make_console()

    async def show(line: str) -> None:
        print_line(console, line, DIM)

    names = [name.strip() for name in parts.split(",") if name.strip()]
    try:
        built = await images.build_image(base, names, tag=tag, network=network, see=None if json else show)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if json:
        write_json({"tag": built.tag, "digest": built.digest, "versions": built.versions})
    else:
        print_line(console, f"Built {built.tag}. Use it with --sandbox docker --sandbox-image {built.tag}")
    return 0
