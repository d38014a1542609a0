"""`agentcore mcp add` and `agentcore mcp remove`: the user's own file of MCP servers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from anyio.to_thread import run_sync

from agentcore.cli.console import DIM, make_console, print_line, print_text
from agentcore.cli.failures import UsageError
from agentcore.cli.mcp_files import describe_target, user_file
from agentcore.cli.settings import Settings
from agentcore.cli.text import one_line
from agentcore.mcp.files import parse_mcp_file
from agentcore.mcp.jsonc import Malformed, Members, has_comments, parse
from agentcore.mcp.writing import write_private

_SHAPE: Final = "mcpServers"
_URL: Final = re.compile(r"https?://|\$\{")
_SECRET: Final = re.compile(r"auth|cookie|key|pass|secret|token", re.IGNORECASE)


async def add_server(
    name: str,
    target: Sequence[str],
    settings: Settings,
    *,
    transport: str | None,
    headers: Sequence[str],
    env: Sequence[str],
    cwd: str | None,
    oauth: bool,
) -> int:
    """Add a server to the user's file, and return the exit code.

    Raises:
        UsageError: It cannot be one, there is one of that name, or the file cannot be changed.
    """
    entry = _make_entry(target, transport, headers, env, cwd, oauth=oauth)
    path = user_file(settings)
    # By the rules for files, so that nothing is written that could not be read.
    read = parse_mcp_file(path, json.dumps({_SHAPE: {name: entry}}).encode(), runs="host")
    if read.problems:
        key = read.problems[0].key.removeprefix(f"{_SHAPE}.{name}").removeprefix(".")
        raise UsageError(f"{key}: {read.problems[0].sentence}" if key else read.problems[0].sentence)

    def add(servers: dict[str, Any]) -> None:
        if name in servers:
            raise UsageError(
                f"There is an MCP server called {name!r} already. Choose another name, or remove that one first: "
                f"{settings.program} mcp remove {name}"
            )
        servers[name] = entry

    await run_sync(_change, path, add)
    console = make_console()
    print_line(console, f"added {one_line(name)}: {describe_target(read.servers[0])}, to {path}")
    if literal := _literal_secrets(entry):
        print_text(
            console,
            f"{literal[0]} is in the file as it was given. To keep it out of there, write ${{VAR}}, as in '${{TOKEN}}': the "
            "variable is read when the server is opened.",
            DIM,
        )
    next_step = ("log in", "login") if oauth else ("try it", "check")
    print_line(console, f"{next_step[0]}: {settings.program} mcp {next_step[1]} {one_line(name)}", DIM)
    return 0


async def remove_server(name: str, settings: Settings) -> int:
    """Remove a server from the user's file, and return the exit code.

    Raises:
        UsageError: It is not there, or the file cannot be changed.
    """
    path = user_file(settings)

    def remove(servers: dict[str, Any]) -> None:
        if name not in servers:
            raise UsageError(
                f"There is no MCP server called {name!r} in {path}. List them: {settings.program} mcp list"
            )
        del servers[name]

    await run_sync(_change, path, remove)
    print_line(make_console(), f"removed {one_line(name)}")
    return 0


def _make_entry(
    target: Sequence[str],
    transport: str | None,
    headers: Sequence[str],
    env: Sequence[str],
    cwd: str | None,
    *,
    oauth: bool,
) -> dict[str, Any]:
    if len(target) == 1 and _URL.match(target[0]):
        if env or cwd is not None:
            raise UsageError("--env and --cwd are for a command, and this is an address.")
        kind = transport or "http"
        entry: dict[str, Any] = {"type": kind, "url": target[0]}
        if headers:
            example = "'Authorization: Bearer ${TOKEN}'"
            entry["headers"] = dict(_split(each, ":", "--header", example) for each in headers)
        if oauth:
            entry["auth"] = "oauth"
        return entry
    if len(target) == 1 and "://" in target[0]:
        raise UsageError(
            f"{target[0]!r} is not an address of an MCP server. Use one that begins with http:// or https://."
        )
    if headers:
        raise UsageError("--header is for an address, and this is a command. Pass --env NAME=VALUE.")
    if oauth:
        raise UsageError("--oauth is for an address, and this is a command. Pass --env NAME=VALUE.")
    if transport is not None:
        raise UsageError(f"--transport {transport} is for an address, and this is a command.")
    entry = {"command": target[0], "args": list(target[1:])}
    if env:
        entry["env"] = dict(_split(each, "=", "--env", "'TOKEN=${TOKEN}'") for each in env)
    if cwd is not None:
        entry["cwd"] = os.path.abspath(cwd)
    return entry


def _split(given: str, sign: str, flag: str, example: str) -> tuple[str, str]:
    name, found, value = given.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"{flag} is a name, {sign!r} and a value, as in {flag} {example}.")
    return name.strip(), value.strip() if sign == ":" else value


def _literal_secrets(entry: dict[str, Any]) -> list[str]:
    """Return the names of values that look like secrets and are written out."""
    values: dict[str, str] = {**entry.get("env", {}), **entry.get("headers", {})}
    return [name for name, value in values.items() if _SECRET.search(name) and "${" not in value]


def _change(path: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the servers of a file, whole or not at all."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except FileNotFoundError:
        text = "{}"
    except UnicodeDecodeError:
        raise UsageError(f"{path}: It is not UTF-8. Repair or remove it first.") from None
    try:
        root = parse(text)
    except Malformed as error:
        raise UsageError(f"{path}: {error} Repair or remove it first.") from None
    servers = root.setdefault(_SHAPE, Members()) if isinstance(root, Members) else None
    if not isinstance(servers, Members) or has_comments(text):
        problem = "it has comments, which would be lost" if has_comments(text) else 'it has no object "mcpServers"'
        raise UsageError(f"{path} cannot be changed: {problem}. Edit it by hand.")
    change(servers)
    write_private(path, json.dumps(root, indent=2, ensure_ascii=False) + "\n")
