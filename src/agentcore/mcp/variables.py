"""Variables in the settings of a server: expanded when it is opened, and the values that are secret masked from then on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from agentcore._text import Mask
from agentcore.errors import MCPServerError, SecretError
from agentcore.mcp.server import MCPServer
from agentcore.secrets import Masker
from agentcore.tools import ToolSecrets

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# What a name like this holds is masked, wherever it was written; other variables hold folders and modes.
_SECRET: Final = re.compile(r"AUTH|BEARER|COOKIE|CREDENTIAL|KEY|PASS|SECRET|TOKEN", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A server's settings with every variable expanded. Its repr shows no value."""

    command: tuple[str, ...] = field(repr=False)
    """The program and its arguments; empty of a server that is reached by its URL."""
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    mask: Mask = field(repr=False)
    """Replaces the conversation's secrets, and what this server was given of this program's environment."""


async def expand(server: MCPServer, secrets: ToolSecrets) -> Launch:
    """Put values in the place of the variables of a server's settings.

    A variable is a secret of the conversation, else one of this program's environment.

    Raises:
        MCPServerError: a variable has no value and no default.
        SecretError: the source of a secret failed.
    """
    values = await _Values.read(server, secrets)
    texts = [server.command or "", *server.args]
    keys = ["command", *(f"args[{number}]" for number in range(len(server.args)))]
    command = tuple(values.put(text, key) for text, key in zip(texts, keys, strict=True))
    env = {
        name: values.put(text, f"env.{name}", secret=bool(_SECRET.search(name))) for name, text in server.env.items()
    }
    headers = {
        name: values.put(text, f"headers.{name}", secret=bool(_SECRET.search(name)))
        for name, text in server.headers.items()
    }
    return Launch(
        command=command if server.command is not None else (),
        env=env,
        cwd=None if server.cwd is None else values.put(server.cwd, "cwd"),
        url=values.put(server.url or "", "url"),
        headers=headers,
        mask=values.masking(secrets.mask),
    )


class _Values:
    def __init__(self, server: MCPServer, secrets: Mapping[str, str]) -> None:
        self._server = server
        self._secrets = secrets
        self._hidden: dict[tuple[str, str], None] = {}

    @classmethod
    async def read(cls, server: MCPServer, secrets: ToolSecrets) -> _Values:
        texts = [server.command, *server.args, *server.env.values(), server.cwd, server.url, *server.headers.values()]
        wanted = {found[1] for text in texts if text for found in _VARIABLE.finditer(text)}
        known = set(secrets.names)
        return cls(server, {name: await secrets.get(name) for name in sorted(wanted & known)})

    def put(self, text: str, key: str, *, secret: bool = False) -> str:
        """Expand a text. What is written in one that is `secret` is masked, and so is a variable that is called like one."""

        def value(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            if name in self._secrets:
                return self._secrets[name]
            held = os.environ.get(name, "")
            if held:
                if secret or _SECRET.search(name):
                    self._hide(name, held)
                return held
            if default is None:
                raise MCPServerError(
                    f"The MCP server {self._server.name!r} needs the variable {name!r} ({key}), and it is not set. Set it in the "
                    f"environment, pass it as a secret of the conversation, or write ${{{name}:-default}}."
                )
            return default

        expanded = _VARIABLE.sub(value, text)
        if secret:
            self._hide(key.rpartition(".")[2], _SCHEME.sub("", expanded, count=1))
        return expanded

    def _hide(self, name: str, value: str) -> None:
        self._hidden.setdefault((name, value), None)

    def masking(self, others: Mask) -> Mask:
        hidden: list[tuple[str, str]] = []
        for pair in self._hidden:
            try:
                Masker((pair,))
            except SecretError:
                continue  # too short to be masked
            hidden.append(pair)
        if not hidden:
            return others
        return _both(others, Masker(hidden).mask_text)


def _both(first: Mask, second: Callable[[str], str]) -> Mask:
    def mask(text: str) -> str:
        return second(first(text))

    return mask


def required_variables(server: MCPServer) -> tuple[str, ...]:
    """Return the variables that a server's settings name without a default, in order."""
    texts = (server.command, *server.args, *server.env.values(), server.cwd, server.url, *server.headers.values())
    found = [each for text in texts if text for each in _VARIABLE.finditer(text)]
    return tuple(dict.fromkeys(each[1] for each in found if each[2] is None))
