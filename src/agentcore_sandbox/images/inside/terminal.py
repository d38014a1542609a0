"""A terminal in a web page, on a port of the box: each page has a shell of its own, which ends with it.

Only the standard library. Who may look is decided outside of the box.
"""

import base64
import fcntl
import hashlib
import os
import pty
import shutil
import signal
import socketserver
import struct
import sys
import termios
import threading
from pathlib import Path
from typing import Protocol

HERE = Path(__file__).parent
PAGES = {
    "/": (HERE / "terminal.html", "text/html; charset=utf-8"),
    "/xterm.js": (HERE / "xterm/xterm.js", "text/javascript"),
    "/xterm.css": (HERE / "xterm/xterm.css", "text/css"),
    "/fit.js": (HERE / "xterm/addon-fit.js", "text/javascript"),
}
ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""Of the WebSocket protocol (RFC 6455, 1.3)."""
LONGEST = 1 << 20
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Browser(socketserver.StreamRequestHandler):
    """One connection: a page, or the WebSocket of one."""

    def handle(self) -> None:
        """Answer the request."""
        words = self.rfile.readline(8192).split()
        headers: dict[bytes, bytes] = {}
        for line in iter(lambda: self.rfile.readline(8192).strip(), b""):
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        path = words[1].decode("latin-1").partition("?")[0] if len(words) > 1 else ""
        key = headers.get(b"sec-websocket-key")
        if path == "/socket" and key is not None:
            accept = base64.b64encode(hashlib.sha1(key + ACCEPT).digest())  # noqa: S324 - the protocol's
            self._answer(
                b"101 Switching Protocols",
                b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept,
            )
            self._serve_shell()
        elif path in PAGES:
            file, kind = PAGES[path]
            content = file.read_bytes()
            self._answer(
                b"200 OK",
                b"Content-Type: %b\r\nContent-Length: %d\r\nConnection: close" % (kind.encode(), len(content)),
            )
            self.wfile.write(content)
        else:
            self._answer(b"404 Not Found", b"Content-Length: 0\r\nConnection: close")

    def _answer(self, status: bytes, headers: bytes) -> None:
        self.wfile.write(b"HTTP/1.1 " + status + b"\r\n" + headers + b"\r\n\r\n")

    def _serve_shell(self) -> None:
        pid, terminal = pty.fork()
        if pid == 0:
            shell = shutil.which("bash") or "/bin/sh"
            os.execve(shell, [shell, "-i"], {**os.environ, "TERM": "xterm-256color"})  # noqa: S606 - a shell is the point
        reading = threading.Thread(target=self._show, args=(terminal,), daemon=True)
        reading.start()
        try:
            while True:
                frame = read_frame(self.rfile)
                if frame is None or frame[0] == CLOSE:
                    return
                if frame[0] == PING:
                    self.wfile.write(format_frame(PONG, frame[1]))
                elif frame[1][:1] == b"i":
                    os.write(terminal, frame[1][1:])
                elif frame[1][:1] == b"s":
                    columns, rows = (int(each) for each in frame[1][1:].split())
                    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        except (OSError, ValueError, struct.error):
            return
        finally:
            os.kill(pid, signal.SIGHUP)
            reading.join(1.0)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)

    def _show(self, terminal: int) -> None:
        try:
            while data := os.read(terminal, 65536):
                self.wfile.write(format_frame(2, data))
        except OSError:
            pass  # the shell has ended, or the page is gone
        try:
            self.wfile.write(format_frame(CLOSE, b""))
        except OSError:
            return


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, count: int, /) -> bytes:
        """Read so many; fewer at the end."""
        ...


def read_frame(stream: Readable) -> "tuple[int, bytes] | None":
    """Return the next frame of a browser: its kind and what is in it; None at the end."""
    head = stream.read(2)
    if len(head) < 2:
        return None
    size = head[1] & 0x7F
    if size == 126:
        (size,) = struct.unpack(">H", stream.read(2))
    elif size == 127:
        (size,) = struct.unpack(">Q", stream.read(8))
    if size > LONGEST or not head[1] & 0x80:
        return None
    mask = stream.read(4)
    data = stream.read(size)
    return head[0] & 0x0F, bytes(each ^ mask[place % 4] for place, each in enumerate(data))


def format_frame(kind: int, data: bytes) -> bytes:
    """Return a frame for a browser."""
    if len(data) < 126:
        return struct.pack(">BB", 0x80 | kind, len(data)) + data
    return (
        struct.pack(">BBQ", 0x80 | kind, 127, len(data)) + data
        if len(data) > 65535
        else struct.pack(">BBH", 0x80 | kind, 126, len(data)) + data
    )


class Server(socketserver.ThreadingTCPServer):
    """All connections."""

    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Browser).serve_forever()
