"""The settings of one MCP server: the program to start, or the address to reach.

Above: `MCPToolset`, which opens it; files and the registry, which make and find it. It is a value and holds nothing open.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from agentcore._value import Value

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")


class MCPServer(Value):
    """One MCP server: a command to start (stdio), or a URL (streamable HTTP, or the older SSE).

    Values of `args`, `env`, `cwd`, `url` and `headers` may hold `${VAR}` and `${VAR:-default}`. They are expanded when the server is
    opened, from the conversation's secrets and then from this program's environment, and never in what is recorded.
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """Its name, which is part of its tools' names."""
    command: str | None = None
    """The program to start."""
    args: tuple[str, ...] = ()
    env: Annotated[dict[str, str], Field(repr=False)] = {}
    """Variables of the program."""
    cwd: str | None = None
    """The folder that it starts in; a relative one is below that of the workspace."""
    url: str | None = None
    headers: Annotated[dict[str, str], Field(repr=False)] = {}
    transport: Literal["stdio", "http", "sse"] = "stdio"
    runs: Literal["host", "workspace"] = "host"
    """Where the program runs: on this machine, or in the conversation's workspace."""
    call_seconds: Annotated[float, Field(gt=0)] = 300.0
    """How long a call may take."""
    include: tuple[str, ...] = ()
    """Patterns of the tools that there are, by the server's own names, as in "get_*". Empty: all."""
    exclude: tuple[str, ...] = ()
    """Patterns of the tools that there are not."""
    trusted_hints: bool = False
    """True if what the server says of its tools (that one only reads, say) is to be believed."""
    auth: Literal["oauth"] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("An MCP server has a command or a url, and not both.")
        if (self.transport == "stdio") == (self.command is None):
            raise ValueError("The transport of a command is 'stdio', that of a url 'http' or 'sse'.")
        return self

    @property
    def digest(self) -> str:
        """The hash of everything in it, by which a log says which server it was."""
        plain = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(plain.encode()).hexdigest()
