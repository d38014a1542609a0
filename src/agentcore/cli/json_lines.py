"""Events and the result as JSON Lines, for programs: nothing else is ever written where they go."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from agentcore._value import Value
from agentcore.events import Event

__all__ = ["JsonLines", "write_json"]


class JsonLines:
    """Writes a conversation as it goes on, to standard output, which is its alone from now on."""

    def __init__(self) -> None:
        sys.stdout.flush()
        output, errors = sys.stdout.fileno(), sys.stderr.fileno()
        self._descriptor = os.dup(output)
        # What else would write there, a library or something it starts, writes to standard error instead.
        os.dup2(errors, output)

    def event(self, event: Event) -> None:
        """Write an event, as the log has it."""
        self._write(event.model_dump_json().encode())

    def result(self, conversation_id: str, result: Value, exit_code: int) -> None:
        """Write the last line: `{"kind": "result", ...}` with all that the `RunResult` says."""
        line = {"kind": "result", "conversation_id": conversation_id, "exit_code": exit_code}
        self._write(_encode({**line, **result.model_dump(mode="json")}))

    def _write(self, line: bytes) -> None:
        rest = memoryview(line + b"\n")
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def write_json(value: Any) -> None:
    """Write one line to standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(_encode(value) + b"\n")


def _encode(value: Any) -> bytes:
    # UTF-8 whatever the locale is: that is what JSON is.
    return json.dumps(value, ensure_ascii=False, default=str).encode(errors="backslashreplace")
