"""A web program that tests run inside of a workspace, to look at it through a view."""

from __future__ import annotations

import socket
import sys

from agentcore_sandbox.views import WebView

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


def find_free_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def make_view(port: int, *, python: str = sys.executable, command: tuple[str, ...] | None = None) -> WebView:
    """Return a view of the program, which listens on a port; or of another one."""
    return WebView(port=port, path="/first?a=b", command=command or (python, "-c", PROGRAM, str(port)))
