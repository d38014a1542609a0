"""The heads of HTTP messages, read strictly: what two programs could read in two ways is refused.

Above: the proxy. Requests come from commands in a box, which may be hostile; responses come from servers that were allowed.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentcore_sandbox.network.policy import split_authority

MAX_HEAD: Final = 32 * 1024
"""The longest head of a message, its empty line included."""
HEAD_END: Final = b"\r\n\r\n"

Headers = tuple[tuple[bytes, bytes], ...]

_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) (HTTP/1\.[01])")
STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-9][0-9][0-9])( [^\x00-\x08\x0a-\x1f\x7f]*)?")
_VALUE: Final = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")
_HTTP_URL: Final = re.compile(r"http://([^/?#@\\]+)([/?][^#]*)?", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")

# Of the connection to the proxy and not of the message; and what is written anew.
_NOT_PASSED_ON: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    }
)
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})


class BadMessage(Exception):
    """A message is not what it has to be."""


class Request(NamedTuple):
    """The head of a request to the proxy."""

    method: str
    host: str
    """The host to reach, in the form in which hosts are compared."""
    port: int
    host_header: tuple[str, int | None] | None
    """The host and port that the header names, which have to be the same."""
    path: str
    """The path and query for the server; empty for CONNECT."""
    version: bytes
    headers: Headers
    """The headers to pass on, without those about the body."""
    length: int | None
    """How many bytes the body has; None: it is in chunks."""

    @property
    def is_connect(self) -> bool:
        """True if a tunnel is asked for."""
        return self.method == "CONNECT"

    @property
    def is_consistent(self) -> bool:
        """False if the header names another host than the one to reach."""
        if self.host_header is None:
            return True
        host, port = self.host_header
        return host == self.host and port in (None, self.port)

    def encode(self) -> bytes:
        """Return the head for the server."""
        # A port that is the default is left out: there are servers that know themselves by the name alone.
        name = f"[{self.host}]" if ":" in self.host else self.host
        host = name if self.port == 80 else f"{name}:{self.port}"
        lines = [
            b" ".join((self.method.encode(), self.path.encode(), self.version)),
            b"Host: " + host.encode(),
            *(name + b": " + value for name, value in self.headers),
            b"Connection: close",
        ]
        if self.length is None:
            lines.append(b"Transfer-Encoding: chunked")
        elif self.length or self.method not in ("GET", "HEAD"):
            lines.append(b"Content-Length: %d" % self.length)
        return b"\r\n".join(lines) + HEAD_END


def parse_request(head: bytes) -> Request:
    """Parse the head of a request, without the empty line at its end.

    Raises:
        BadMessage: It is not one for a proxy, or can be read in more than one way.
    """
    first, headers = split_head(head)
    match = _REQUEST_LINE.fullmatch(first)
    if match is None:
        raise BadMessage("The first line is not that of a request of HTTP/1.1.")
    method, target, version = match[1].decode(), match[2].decode(), match[3]
    is_chunked, length = read_framing(headers, version)
    try:
        if method == "CONNECT":
            host, port = split_authority(target)
            path = ""
        else:
            authority, path = _split_url(target)
            host, port = split_authority(authority)
            port = port or 80
        if port is None:
            raise BadMessage("CONNECT names a host and a port.")
        named = _host_header(headers)
    except ValueError as error:
        raise BadMessage(str(error)) from None
    if method == "CONNECT" and (is_chunked or length):
        raise BadMessage("CONNECT has no body.")
    passed = tuple((name, value) for name, value in end_to_end(headers) if name.lower() not in {b"host", *_FRAMING})
    return Request(method, host, port, named, path, version, passed, None if is_chunked else length)


def _split_url(target: str) -> tuple[str, str]:
    if target.startswith("/") or target == "*":
        raise BadMessage("This is a proxy, and not a server: it takes CONNECT, and http:// with a host.")
    match = _HTTP_URL.fullmatch(target)
    if match is None:
        raise BadMessage("The proxy takes CONNECT, and http:// with a host, without a user or a fragment.")
    path = match[2] or "/"
    return match[1], path if path.startswith("/") else f"/{path}"


def _host_header(headers: Headers) -> tuple[str, int | None] | None:
    values = [value for name, value in headers if name.lower() == b"host"]
    if len(values) > 1:
        raise BadMessage("There is more than one Host header.")
    if not values:
        return None
    try:
        return split_authority(values[0].decode("ascii"))
    except UnicodeDecodeError:
        raise BadMessage("The Host header is not a host.") from None


def read_framing(headers: Headers, version: bytes) -> tuple[bool, int]:
    """Return True if the body of a request comes in chunks; else how long it is.

    Raises:
        BadMessage: It can be read in more than one way.
    """
    encodings = [value for name, value in headers if name.lower() == b"transfer-encoding"]
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    if encodings:
        if len(encodings) > 1 or encodings[0].lower() != b"chunked" or lengths or version != b"HTTP/1.1":
            raise BadMessage("Transfer-Encoding is chunked alone, without Content-Length, in HTTP/1.1.")
        return True, 0
    if len(lengths) > 1 or (lengths and not _LENGTH.fullmatch(lengths[0])):
        raise BadMessage("Content-Length is one number.")
    return False, int(lengths[0]) if lengths else 0


def parse_response(head: bytes) -> tuple[int, bytes]:
    """Parse the head of a response, without the empty line at its end; return its status, and the head for the client.

    The body follows as it is, up to the end of the connection.

    Raises:
        BadMessage: It is not one.
    """
    first, headers = split_head(head)
    match = STATUS_LINE.fullmatch(first)
    if match is None:
        raise BadMessage("The first line is not that of a response of HTTP/1.1.")
    status = int(match[1])
    if status == 101:
        raise BadMessage("The server changes to another protocol, which the request did not ask for.")
    lines = [first, *(name + b": " + value for name, value in end_to_end(headers))]
    if status >= 200:
        lines.append(b"Connection: close")
    return status, b"\r\n".join(lines) + HEAD_END


def end_to_end(headers: Headers) -> Headers:
    """Return the headers that are not about one connection alone, those that `Connection` names left out as well."""
    named = {
        part.strip().lower() for name, value in headers if name.lower() == b"connection" for part in value.split(b",")
    }
    dropped = _NOT_PASSED_ON | (named - _FRAMING)
    return tuple((name, value) for name, value in headers if name.lower() not in dropped)


def split_head(head: bytes) -> tuple[bytes, Headers]:
    """Return the first line of a message and its headers.

    Raises:
        BadMessage: A line is not a header.
    """
    first, *lines = head.split(b"\r\n")
    headers: list[tuple[bytes, bytes]] = []
    for line in lines:
        name, colon, value = line.partition(b":")
        # A line that begins with a space would go on with the one before it; nobody has to write that any more.
        if not colon or not _TOKEN.fullmatch(name):
            raise BadMessage("A line of the head is not a header.")
        value = value.strip(b" \t")
        if not _VALUE.fullmatch(value):
            raise BadMessage("A header has characters that it may not have.")
        headers.append((name, value))
    return first, tuple(headers)
