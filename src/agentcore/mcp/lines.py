"""Messages of JSON-RPC in lines: taken apart in linear time, and read as far as they can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from agentcore._text import replace_lone_surrogates
from agentcore._value import is_too_deep

# The id of an answer stands at its beginning, where every known server writes it, or at its end.
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")')
_LOOKED_AT: Final = 200


class LineBuffer:
    """Bytes that come in pieces, as lines. What is not a line yet is counted in `size`."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that the data ends."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._pieces.append(piece)
            line = b"".join(self._pieces)
            self._pieces.clear()
            self.size = 0
            yield line
        if rest:
            self._pieces.append(rest)
            self.size += len(rest)


def parse_line(line: bytes) -> JSONRPCMessage | None:
    """Return the message in a line; None where there is none.

    Bytes that are no UTF-8 and halves of characters become U+FFFD. An answer that still can't be read is an error to whoever
    waits for it.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        value = json.loads(line.decode("utf-8", "replace"))
        if not is_too_deep(value):
            return jsonrpc_message_adapter.validate_python(replace_lone_surrogates(value), by_name=False)
        why = "it is nested too deeply"
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError:
        why = "it is not a message of JSON-RPC"
    found = _ID.search(line[:_LOOKED_AT]) or _ID.search(line[-_LOOKED_AT:])
    if found is None or (b'"result"' not in line and b'"error"' not in line):
        return None
    message = f"The server's answer can't be read: {why}."
    return JSONRPCError(jsonrpc="2.0", id=json.loads(found[1]), error=ErrorData(code=PARSE_ERROR, message=message))


def render_line(message: JSONRPCMessage) -> bytes:
    """Return a message as a line. Halves of characters, which no line can hold, become U+FFFD."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        text = json.dumps(replace_lone_surrogates(message.model_dump(by_alias=True, exclude_unset=True)))
    return text.encode() + b"\n"
