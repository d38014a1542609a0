"""One server's entry in a file, in the words of the programs that people bring such files from.

Above: `files.py`, which reads the file around it. An entry that cannot be understood is a fault of its own, and the others are
read. What would be a permission is never taken from a file.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Literal, cast

from pydantic import ValidationError

from agentcore.mcp.jsonc import Members
from agentcore.mcp.server import MCPServer

Transport = Literal["stdio", "http", "sse"]
Runs = Literal["host", "workspace"]

_TRANSPORTS: Final[Mapping[str, Transport]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_COMMAND_KEYS: Final = frozenset({"command", "args", "env", "cwd"})
_URL_KEYS: Final[Mapping[str, Transport | None]] = {"url": None, "serverUrl": None, "httpUrl": "http"}
"""Keys that hold the address, and the transport that one of them means."""
KNOWN: Final = (
    *sorted(_COMMAND_KEYS),
    *_URL_KEYS,
    *("type", "transport", "headers", "disabled", "enabled", "timeout", "auth"),
    *("include", "exclude", "includeTools", "excludeTools", "disabledTools"),
)
_HARMLESS: Final = frozenset({"$schema", "_comment", "alwaysLoad", "description", "dev", "gallery", "icon", "note"})
_HARMLESS_TOO: Final = frozenset({"title", "version"})
_PERMISSIONS: Final = frozenset(
    {"alwaysAllow", "autoAllow", "autoApprove", "permissions", "trust", "trusted", "trusted_hints"}
)
_INSTEAD: Final[Mapping[str, str]] = {
    "envFile": "write its variables in `env`",
    "headersHelper": 'write the header in `headers`, as in "Bearer ${TOKEN}"',
    "oauth": 'write "auth": "oauth"',
}
_ASKED: Final = re.compile(r"\$\{(?:input|command|config):[^}]*\}")
_FROM_ENVIRONMENT: Final = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_FOLDER: Final = re.compile(r"\$\{workspaceFolder\}(/)?")
_BROKEN: Final = re.compile("[\0\ud800-\udfff]")
_MILLISECONDS_FROM: Final = 1_000


class EntryFault(Exception):
    """An entry that is left out: the key that is wrong, and what to write instead."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


@dataclass
class Entry:
    """The server that an entry describes."""

    server: MCPServer
    disabled: bool
    ignored: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Keys that change nothing here, and why."""


def parse_entry(name: str, entry: object, *, runs: Runs, folder: str) -> Entry:
    """Make a server of its entry.

    Args:
        name: The key of the entry.
        entry: Its value.
        runs: Where programs run.
        folder: The project's folder, for relative paths of what runs on the host.

    Raises:
        EntryFault: It cannot be understood.
    """
    if not isinstance(entry, Members):
        raise EntryFault("", 'A server is an object, as in {"command": "npx", "args": ["-y", "a-server"]}.')
    if _BROKEN.search(name):
        raise EntryFault("", "The name has characters that are not text. Write it anew.")
    if entry.repeated:
        raise EntryFault(entry.repeated[0], "This key stands here twice. Write it once.")
    return _Reader(name, entry, runs, folder).read()


class _Reader:
    def __init__(self, name: str, entry: Members, runs: Runs, folder: str) -> None:
        self._name = name
        self._entry = entry
        self._runs: Runs = runs
        self._folder = folder

    def read(self) -> Entry:
        command, url_key = self._entry.get("command"), self._find_url()
        transport = self._transport(url_key)
        cwd = None if transport != "stdio" or self._entry.get("cwd") is None else self._cwd(self._text("cwd"))
        fields: dict[str, Any] = {"cwd": cwd}
        if transport == "stdio":
            if not command:
                raise EntryFault("command", 'It is missing. Write the program, as in "command": "npx".')
            fields["command"] = self._in_folder("command", self._text("command"), cwd)
            fields["args"] = tuple(self._in_folder(f"args[{n}]", arg, cwd) for n, arg in enumerate(self._list("args")))
            fields["env"] = {key: self._in_folder(f"env.{key}", text, cwd) for key, text in self._map("env")}
        else:
            assert url_key is not None
            fields["url"] = self._url(url_key)
            fields["headers"] = dict(self._map("headers"))
            if broken := [key for key, text in fields["headers"].items() if "\n" in key + text or "\r" in key + text]:
                raise EntryFault(f"headers.{broken[0]}", "A header is one line of text.")
        fields["include"] = tuple(self._list("include") or self._list("includeTools"))
        left_out = (*self._list("exclude"), *self._list("excludeTools"), *self._list("disabledTools"))
        if left_out:
            fields["exclude"] = left_out
        if (seconds := self._seconds()) is not None:
            fields["call_seconds"] = seconds
        if (auth := self._entry.get("auth")) is not None:
            if auth not in ("oauth", "oauth2") or transport == "stdio":
                raise EntryFault("auth", 'It can be "oauth", for a url. Write other credentials in `headers` or `env`.')
            fields["auth"] = "oauth"
        try:
            server = MCPServer(name=self._name, transport=transport, runs=self._runs, **fields)
        except ValidationError as error:
            raise EntryFault("", _explain(error)) from None
        disabled = self._flag("disabled", default=False) or not self._flag("enabled", default=True)
        return Entry(server, disabled, list(self._ignored(transport)))

    def _find_url(self) -> str | None:
        found = [key for key in _URL_KEYS if self._entry.get(key)]
        if len(found) > 1:
            raise EntryFault(found[1], f"There is `{found[0]}` too. Write one of them.")
        if found and self._entry.get("command"):
            raise EntryFault(found[0], "There is `command` too. Write one of them: a program to start, or an address.")
        return found[0] if found else None

    def _transport(self, url_key: str | None) -> Transport:
        key = "type" if "type" in self._entry else "transport"
        given = self._entry.get(key)
        if given is None:
            if url_key is None and not self._entry.get("command"):
                raise EntryFault(
                    "", "It has neither `command` nor `url`. Write the program to start, or the server's address."
                )
            return "stdio" if url_key is None else _URL_KEYS[url_key] or "http"
        transport = _TRANSPORTS.get(given.lower()) if isinstance(given, str) else None
        if transport is None:
            raise EntryFault(key, f'There is no transport {given!r}. Write "stdio", "http" or "sse".')
        if transport == "stdio" and url_key is not None:
            raise EntryFault(key, f'"stdio" is for a `command`, and this is a `{url_key}`. Write "http" or "sse".')
        if transport != "stdio" and url_key is None:
            raise EntryFault("url", f'It is missing. Write the address of the server, or "{key}": "stdio".')
        return transport

    def _url(self, key: str) -> str:
        url = self._text(key)
        if not url.startswith(("http://", "https://", "${")):
            raise EntryFault(key, "An address begins with https:// or http://.")
        return url

    def _cwd(self, cwd: str) -> str:
        """Return the folder to start in: one of this machine, or one of the workspace."""
        cwd = _FOLDER.sub(lambda found: "./" if found[1] else ".", cwd)
        if self._runs == "workspace" or "${" in cwd:
            return cwd
        return os.path.abspath(os.path.join(self._folder, os.path.expanduser(cwd)))

    def _in_folder(self, key: str, text: str, cwd: str | None) -> str:
        """Replace `${workspaceFolder}` by a path that holds where the program starts."""
        if "${workspaceFolder}" not in text:
            return text
        if self._runs == "host":
            folder = self._folder
        elif cwd is None:
            folder = "."
        elif posixpath.isabs(cwd) or "${" in cwd:
            raise EntryFault(key, "`${workspaceFolder}` is not known with such a `cwd`. Write a path.")
        else:
            folder = posixpath.relpath(".", cwd)
        return _FOLDER.sub(lambda found: folder + (found[1] or ""), text)

    def _text(self, key: str) -> str:
        value = self._entry[key]
        if not isinstance(value, str):
            raise EntryFault(key, "Write it as text, in quotes.")
        return self._checked(key, value)

    def _checked(self, key: str, text: str) -> str:
        if _BROKEN.search(text):
            raise EntryFault(key, "It has characters that are not text. Write it anew.")
        if (asked := _ASKED.search(text)) is not None:
            raise EntryFault(key, f"{asked[0]} is not supported. Write ${{VAR}}, and set the variable VAR.")
        return _FROM_ENVIRONMENT.sub(r"${\1}", text).replace("${userHome}", "${HOME}")

    def _list(self, key: str) -> list[str]:
        value = self._entry.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise EntryFault(key, 'Write it as a list, as in ["-y", "a-server"].')
        return [self._scalar(f"{key}[{number}]", each) for number, each in enumerate(cast("list[Any]", value))]

    def _map(self, key: str) -> Iterator[tuple[str, str]]:
        value = self._entry.get(key)
        if value is None:
            return
        if not isinstance(value, Members):
            raise EntryFault(key, 'Write it as an object, as in {"NAME": "value"}.')
        if value.repeated:
            raise EntryFault(f"{key}.{value.repeated[0]}", "This key stands here twice. Write it once.")
        for name, each in value.items():
            if not name or "=" in name or _BROKEN.search(name):
                raise EntryFault(f"{key}.{name}", "This is not a name.")
            if each is not None:
                yield name, self._scalar(f"{key}.{name}", each)

    def _scalar(self, key: str, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise EntryFault(key, "Write it as text, in quotes.")
        return self._checked(key, str(value))

    def _flag(self, key: str, *, default: bool) -> bool:
        value = self._entry.get(key, default)
        if not isinstance(value, bool):
            raise EntryFault(key, "Write true or false.")
        return value

    def _seconds(self) -> float | None:
        value = self._entry.get("timeout")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise EntryFault("timeout", "Write a number of milliseconds, as in 60000.")
        # Some programs count seconds; no call is meant to end in less than one.
        return value / 1_000 if value >= _MILLISECONDS_FROM else float(value)

    def _ignored(self, transport: Transport) -> Iterator[tuple[str, str]]:
        for key in self._entry:
            if key in _PERMISSIONS:
                yield key, "It is ignored: a file does not give permission. See --confirm."
            elif key in _INSTEAD:
                yield key, f"It is ignored: {_INSTEAD[key]}."
            elif key == "headers" and transport == "stdio":
                yield key, "It is ignored: it is for a `url`."
            elif key in _COMMAND_KEYS and transport != "stdio":
                yield key, "It is ignored: it is for a `command`."
            elif key not in KNOWN and key not in _HARMLESS and key not in _HARMLESS_TOO:
                close = get_close_matches(key, KNOWN, n=1)
                yield key, f"It is ignored: there is no such key.{f' Did you mean `{close[0]}`?' if close else ''}"


def _explain(error: ValidationError) -> str:
    detail = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in detail["loc"])
    message = detail["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
