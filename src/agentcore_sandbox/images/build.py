"""`build_image`: an image for boxes, with parts, made by the Docker engine from a base that has apt.

Above: `agentcore sandbox build`. Below: `Engine`. What the machine needs to reach its package servers (a proxy, certificates, other
registries) is taken from the environment.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, final

from anyio.to_thread import run_sync

from agentcore.errors import WorkspaceError
from agentcore_sandbox.box import Progress
from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.docker.errors import EngineError
from agentcore_sandbox.docker.images import find_image
from agentcore_sandbox.images.dockerfile import NO_APT, VERSION_MARK, format_dockerfile, pack_context
from agentcore_sandbox.images.parts import PARTS, check_parts

DEFAULT_BASE: Final = "debian:12"
VERSIONS: Final = "agentcore.versions"
"""The label with the versions of what was installed: a JSON object."""
BASE: Final = "agentcore.base"
"""The label with the base's name and id."""

_TAG: Final = re.compile(r"[a-z0-9]+([._/:-]+[A-Za-z0-9_]+)*")
PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_REGISTRIES: Final = {"PIP_INDEX_URL": "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY": "npm_config_registry"}
CERTIFICATES: Final = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT")
_LAST_LINES: Final = 12

See = Callable[[str], Awaitable[None]]
"""Is awaited with each line of a build."""


class BuiltImage(NamedTuple):
    """An image that was built."""

    tag: str
    digest: str
    """The id of its content."""
    versions: dict[str, str]
    """The versions of what was installed, by package."""


async def build_image(
    base: str = DEFAULT_BASE,
    parts: Sequence[str] = (),
    *,
    tag: str | None = None,
    network: Literal["default", "host"] = "default",
    see: See | None = None,
) -> BuiltImage:
    """Build an image. Without parts it is the base, with Python.

    Versions of Debian's packages are those of the base's archive on that day; they are recorded in the label "agentcore.versions". Others are
    fixed.

    Args:
        base: The image to begin with: Debian 12, or another with its packages. It is pulled if it is not here.
        parts: "desktop", "editor", "terminal".
        tag: The name; by default "agentcore-sandbox:" and the parts.
        network: The network while it is built; "host" where containers have none of their own.
        see: Is awaited with each line.

    Raises:
        ValueError: There is no such part, or the name cannot be one.
        WorkspaceError: It cannot be built; the message has the last lines.
    """
    names = check_parts(list(parts))
    tag = tag or f"agentcore-sandbox:{'-'.join(names) or 'base'}"
    if not _TAG.fullmatch(tag):
        raise ValueError(f"tag={tag!r} is not the name of an image: write it as in 'my-sandbox:1'.")
    lines = _Lines(see)
    async with open_engine() as engine:
        found = await find_image(engine, base, pull="missing", progress=lines.note_pull)
        dockerfile = format_dockerfile(found.digest, names)
        context = await run_sync(lambda: pack_context(dockerfile, names, read_certificates()))
        args = {**read_environment(), "AGENTCORE_BUILD": secrets.token_hex(8)}
        try:
            made = await engine.build(context, lines.note, args=args, network=network)
            versions = {**lines.versions, **{key: each for name in names for key, each in PARTS[name].pinned.items()}}
            labels = {BASE: f"{base}@{found.digest}", VERSIONS: json.dumps(versions, sort_keys=True)}
            # Once more from there, because the versions are known only now.
            last = pack_context(f"FROM {made}\n", [], b"")
            digest = await engine.build(last, lines.note, tag=tag, labels=labels)
        except EngineError as error:
            raise WorkspaceError(_explain(base, error, lines.last)) from error
    return BuiltImage(tag, digest, versions)


def _explain(base: str, error: EngineError, last: Sequence[str]) -> str:
    if any(line == NO_APT for line in last):
        return f"{base!r} has no apt-get, by which parts are installed. Pass another base, as {DEFAULT_BASE!r}."
    shown = "\n".join(last)
    return (
        f"The image could not be built from {base!r}: {error}\n{shown}\nIf it is the network that fails: proxies, certificates (SSL_CERT_FILE)"
        " and registries are taken from the environment, and --network host builds in this machine's own network."
    )


@final
class _Lines:
    """The output of a build, line by line."""

    def __init__(self, see: See | None) -> None:
        self._see = see
        self._begun = ""
        self.versions: dict[str, str] = {}
        self.last: deque[str] = deque(maxlen=_LAST_LINES)

    async def note_pull(self, progress: Progress) -> None:
        """Take the progress of a base that is pulled."""
        await self._take(progress.text)

    async def note(self, event: dict[str, Any]) -> None:
        """Take what the engine says."""
        self._begun += str(event.get("stream") or "").replace("\r", "\n")
        *whole, self._begun = self._begun.split("\n")
        for line in whole:
            await self._take(line)

    async def _take(self, line: str) -> None:
        words = line.split()
        if len(words) == 3 and words[0] == VERSION_MARK:
            self.versions[words[1]] = words[2]
        elif words:
            self.last.append(line)
            if self._see is not None:
                await self._see(line)


def read_environment() -> dict[str, str]:
    """Return the arguments of a build that this machine's environment has: proxies and registries."""
    # Docker leaves proxies out of the image's history. Registries are in it, so not with a password.
    found = {name: os.environ[name] for name in PROXIES if os.environ.get(name)}
    for name, variable in _REGISTRIES.items():
        value = os.environ.get(name) or os.environ.get(variable)
        if value and "@" not in value:
            found[name] = value
    return found


def read_certificates() -> bytes:
    """Return this machine's certificates, if it names a file of its own."""
    for variable in CERTIFICATES:
        path = os.environ.get(variable)
        if path and Path(path).is_file():
            return Path(path).read_bytes()
    return b""
