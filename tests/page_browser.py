"""The server of `page_server` as a process, and a browser's page with all that it asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

PROGRAM = Path(__file__).parent / "page_server.py"


@dataclass
class Server:
    """The program of `page_server`, which can be killed and started again on its port."""

    folder: Path
    url: str = ""
    key: str = ""
    link: str = ""
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = self._command(str(urlsplit(self.url).port or 0))
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment())
        assert self.process.stdout is not None
        line = json.loads(self.process.stdout.readline())
        self.url, self.link = line["url"], line["link"]
        self.key = line["key"] or self.key

    def run(self, *arguments: str) -> None:
        """Run the program with other arguments, to its end."""
        subprocess.run(self._command(*arguments), check=True, env=_environment())

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(PROGRAM), str(self.folder), *arguments]

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        url = f"{self.url}/api/v1/{path}"
        answer = httpx.request(method, url, json=body, headers=headers, timeout=30, trust_env=False)
        answer.raise_for_status()
        return answer.json()

    def make(self, title: str, text: str | None = None, **spec: Any) -> str:
        """Make a conversation, and have it run until it settles."""
        made = self.ask("POST", "conversations", {"agent": "coder", "title": title, **spec})["id"]
        if text is not None:
            self.ask("POST", f"conversations/{made}/run?wait=30", {"text": text})
        return made


class Watched:
    """A browser's page, and all that it asked for and complained of."""

    def __init__(self, context: Any) -> None:
        self.page: Any = context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        context.on("request", self._note_request)
        self.page.on("websocket", self._note_request)
        self.page.on("console", self._note_message)
        self.page.on("pageerror", self._note_error)

    def open(self, server: Server, conversation: str) -> Any:
        self.page.goto(f"{server.url}/#/c/{conversation}")
        self.page.wait_for_selector(".conversation .timeline")
        return self.page

    def _note_request(self, request: Any) -> None:
        self.requests.append(request.url)

    def _note_message(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def _note_error(self, error: Any) -> None:
        self.complaints.append(str(error))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
