"""The settings of one MCP server: the program to start, or the address to reach.

Above: `MCPToolset`, which opens it; files and the registry, which make and find it. It is a value and holds nothing open.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, model_validator

from agentcore._value import Value


class MCPServer(Value):
    """One MCP server: a command to start (stdio), or a URL (streamable HTTP, or the older SSE).

    `command`, `args`, `cwd`, `url` and the values of `env` and `headers` may hold `${VAR}` and `${VAR:-default}`. They are expanded
    when the server is opened, from the conversation's secrets and then from this program's environment, and never in what is
    recorded.

    Raises:
        ValueError: It has neither a command nor a URL, or both, or a transport of the other kind.
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """Its name, which is part of its tools' names."""
    command: str | None = None
    """The program to start."""
    args: Annotated[tuple[str, ...], Field(repr=False)] = ()
    """The arguments of the program."""
    env: Annotated[dict[str, str], Field(repr=False)] = {}
    """Variables of the program, beside those of its surroundings."""
    cwd: str | None = None
    """The folder that the program starts in; a relative one is below that of the workspace."""
    url: Annotated[str | None, Field(repr=False)] = None
    """The address of a server that runs already."""
    headers: Annotated[dict[str, str], Field(repr=False)] = {}
    """Sent with every request to the URL, and with none to another origin."""
    transport: Literal["stdio", "http", "sse"] = "stdio"
    """The transport. Left out, it is "stdio" for a command and "http" (streamable HTTP) for a URL."""
    runs: Literal["host", "workspace"] = "host"
    """Where the program runs: on this machine, or in the conversation's workspace (its container, say)."""
    call_seconds: Annotated[float, Field(gt=0)] = 300.0
    """How long a call may take, without the time in which a person is asked."""
    include: tuple[str, ...] = ()
    """Patterns of the tools to offer, by the server's own names, as in "get_*". Empty: all."""
    exclude: tuple[str, ...] = ()
    """Patterns of the tools to leave out."""
    trusted_hints: bool = False
    """True if what the server says of its tools (that one only reads, say) is to be believed."""
    auth: Literal["oauth"] | None = None
    """How to sign in: with the tokens of `agentcore mcp login`. Those are used without it too, where the headers have no
    `Authorization`."""

    @model_validator(mode="before")
    @classmethod
    def _infer_transport(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and "transport" not in fields and cast("dict[str, Any]", fields).get("url"):
            return {**cast("dict[str, Any]", fields), "transport": "http"}
        return cast("Any", fields)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("An MCP server has a command or a url, and not both.")
        if self.auth is not None and self.url is None:
            raise ValueError("auth is for a url.")
        if (self.transport == "stdio") == (self.command is None):
            raise ValueError("The transport of a command is 'stdio', that of a url 'http' or 'sse'.")
        return self

    @property
    def digest(self) -> str:
        """The hash of everything in it, by which a log says which server it was."""
        plain = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(plain.encode()).hexdigest()
