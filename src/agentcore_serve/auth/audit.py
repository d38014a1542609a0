"""The audit log: who did what and when, never the content. A JSON-lines file beside the conversations."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, final

from agentcore._threads import Threads
from agentcore.logs import get_logger

_logger = get_logger(__name__)
AUDIT_LOG: Final = "audit.jsonl"
"""The name of the file, in the folder of the conversations."""

_THREADS: Final = Threads("serve_audit", 1)


@final
class AuditLog:
    """Appends lines to a file that its user alone can read.

    The file is opened for each line, so that it can be moved away (logrotate) at any time.
    """

    def __init__(self, path: str, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    async def record(
        self,
        action: str,
        target: str,
        *,
        key: str | None,
        owner: str | None = None,
        status: int | None = None,
        **more: str | None,
    ) -> None:
        """Append a line. What cannot be written is logged instead: a full disk must not stop who wants to free it.

        Args:
            action: The method, or a word for what happened.
            target: What it was done to: a path without its query, or an id.
            key: The id of the key.
            owner: Whose key it is.
            status: The status that was answered, to a request.
            more: What else identifies the request, such as its id and its address.
        """
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "key": key, "owner": owner, "action": action, "target": target, "status": status, **more}
        try:
            await _THREADS.run(self._append, json.dumps(line).encode() + b"\n")
        except OSError as error:
            # Without a traceback, which holds nothing more.
            _logger.error("audit_failed", reason=error.strerror, **line)  # noqa: TRY400

    def _append(self, line: bytes) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)
