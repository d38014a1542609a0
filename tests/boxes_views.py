"""A web program that tests run inside of a workspace, to look at it through a view."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.images.dockerfile import pack_context
from agentcore_sandbox.views import WebView
from agentcore_sandbox.views.view import LABEL, format_views

PROGRAM = r"""
import base64, hashlib, json, socketserver, sys

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode().strip()
        headers = {}
        while pair := self.rfile.readline().decode().strip():
            name, _, value = pair.partition(":")
            headers[name.lower()] = value.strip()
        if "upgrade" in headers:
            key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
            self.wfile.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
            while data := self.rfile.read1(65536):
                self.wfile.write(data)
            return
        if line.startswith("GET /endless"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegun")
            print("asked", flush=True)
            self.rfile.read()
            open("left", "w").close()
            return
        body = self.rfile.read(int(headers.get("content-length", 0))).decode()
        answer = json.dumps({"line": line, "headers": headers, "body": body}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: evil=1\r\nContent-Length: {len(answer)}\r\n\r\n"
        self.wfile.write(head.encode() + answer)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

open("started", "a").write("x")
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

SERVED_PROGRAM = r"""
import base64, hashlib, json, socketserver, sys
from urllib.parse import unquote

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode().strip()
        headers = {}
        while pair := self.rfile.readline().decode().strip():
            name, _, value = pair.partition(":")
            headers[name.lower()] = value.strip()
        path = line.split()[1] if line else ""
        if "upgrade" in headers:
            self.talk(headers)
        elif path.startswith("/to?"):
            self.answer("302 Found", "", f"Location: {unquote(path[4:])}")
        elif path.startswith("/page"):
            self.answer("200 OK", open("page.html").read(), "Content-Type: text/html")
        else:
            body = self.rfile.read(int(headers.get("content-length", 0))).decode()
            seen = json.dumps({"line": line, "headers": headers, "body": body})
            self.answer("200 OK", seen, "Content-Type: application/json", "Set-Cookie: agentcore_view=evil; Path=/")

    def answer(self, status, body, *headers):
        head = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body.encode())}", "", ""]
        self.wfile.write("\r\n".join(head).encode() + body.encode())

    def talk(self, headers):
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {accept}"]
        self.wfile.write("\r\n".join([*head, "", ""]).encode())
        while len(first := self.rfile.read(2)) == 2:
            mask, size = self.rfile.read(4), first[1] & 127
            text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
            self.wfile.write(bytes([first[0], size]) + text)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

open("started", "a").write("x")
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
"""Sends back what it gets: requests as JSON, short messages of a WebSocket as they are. It redirects from /to?..., and /page is page.html."""


def find_free_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def make_view(
    port: int, *, python: str = sys.executable, command: tuple[str, ...] | None = None, program: str = PROGRAM
) -> WebView:
    """Return a view of the program, which listens on a port; or of another one."""
    return WebView(port=port, path="/first?a=b", command=command or (python, "-c", program, str(port)))


@asynccontextmanager
async def image_with_views() -> AsyncGenerator[str]:
    """Make an image of the one for tests that offers a view "app", on port 8000, and return its name."""
    label = format_views({"app": make_view(8000, python="python3", program=SERVED_PROGRAM)})
    tag = f"agentcore-tests:served-views-{os.getpid()}"

    async def see(event: dict[str, object]) -> None:
        del event

    async with open_engine() as engine:
        context = pack_context(f"FROM {os.environ['TEST_IMAGE']}\n", [], b"")
        await engine.build(context, see, tag=tag, labels={LABEL: label})
        try:
            yield tag
        finally:
            with anyio.CancelScope(shield=True):
                await engine.remove_image(tag)
