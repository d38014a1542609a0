"""Logging: an event's name and what belongs to it as key-value pairs, over the standard library.

Silent until a program listens. A program listens through the standard library (a handler on the logger "agentcore" or
on the root), through a structlog that it has configured itself, or by calling `configure_logging`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TextIO, final

_ROOT: Final = logging.getLogger("agentcore")
_ROOT.addHandler(logging.NullHandler())

_conversation_id: ContextVar[str | None] = ContextVar("agentcore_conversation_id", default=None)

# What renderers and structlog itself put into an event.
_RESERVED = frozenset({"event", "level", "logger", "timestamp"})
_METHODS: Final = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}


def get_logger(name: str) -> Logger:
    """Make a logger for a module: `get_logger(__name__)`.

    The packages beside agentcore log below it too ("agentcore_tools.terminal" as "agentcore.tools.terminal"), so that
    one level and one handler are for all.
    """
    if name.startswith("agentcore_"):
        name = f"agentcore.{name.removeprefix('agentcore_')}"
    return Logger(name)


@contextmanager
def bind_conversation(conversation_id: str) -> Generator[None]:
    """Add this id to all that is logged inside, by tasks that are started inside too."""
    token = _conversation_id.set(conversation_id)
    try:
        yield
    finally:
        _conversation_id.reset(token)


@final
class Logger:
    """Logs events with key-value pairs; without a listener each costs a comparison."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **fields: Any) -> None:
        """Log what helps to find a fault in agentcore."""
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Any) -> None:
        """Log what an operator may want to know."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Any) -> None:
        """Log what went wrong and was dealt with."""
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: Any) -> None:
        """Log what went wrong."""
        self._log(logging.ERROR, event, fields)

    def exception(self, event: str, /, **fields: Any) -> None:
        """Log what went wrong, with the exception that is being handled."""
        self._log(logging.ERROR, event, fields, exc_info=True)

    def _log(self, level: int, event: str, fields: dict[str, Any], *, exc_info: bool = False) -> None:
        structlog = _configured_structlog()
        if structlog is None:
            if self._logger.isEnabledFor(level):
                # stacklevel: the line that is named is our caller's caller's.
                self._logger.log(level, _Entry(event, _complete(fields)), exc_info=exc_info, stacklevel=3)
        elif level >= _ROOT.level:
            if exc_info:
                fields["exc_info"] = True
            bound = structlog.get_logger(self._logger.name)
            # By the method's name and not `log(level)`, which not every wrapper class of structlog's has.
            getattr(bound, _METHODS[level])(event, logger=self._logger.name, **_complete(fields))


@final
class _Entry:
    """The message of a log record: the standard library's handlers see text, ours see its parts."""

    __slots__ = ("event", "fields")

    def __init__(self, event: str, fields: Mapping[str, Any]) -> None:
        self.event = event
        self.fields = fields

    def __str__(self) -> str:
        return " ".join((self.event, *(f"{key}={value!r}" for key, value in self.fields.items())))


def _complete(fields: dict[str, Any]) -> dict[str, Any]:
    complete = {f"{key}_" if key in _RESERVED else key: value for key, value in fields.items()}
    conversation_id = _conversation_id.get()
    if conversation_id is not None:
        complete.setdefault("conversation_id", conversation_id)
    return complete


def _configured_structlog() -> Any:
    """Return structlog, if this program has configured it and has not asked us to do our own."""
    structlog = sys.modules.get("structlog")
    if structlog is None or any(isinstance(handler, _Handler) for handler in _ROOT.handlers):
        return None
    return structlog if structlog.is_configured() else None


@final
class _Handler(logging.StreamHandler[TextIO]):
    """The handler that `configure_logging` sets, so that it finds it again."""


def configure_logging(*, json: bool, level: int | str = "INFO", stream: TextIO | None = None) -> None:
    """Write the log to a stream (standard error): one JSON object per line, or for a person to read.

    For programs that have no logging of their own, as our command line and server are. Calling it again replaces what
    was set. It sets a handler on the logger "agentcore" and leaves the rest of the program's logging as it is.
    """
    # Here and not above: importing agentcore must not import structlog, and most programs never come here.
    import structlog  # noqa: PLC0415

    def unpack(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        entry = event["_record"].msg
        if isinstance(entry, _Entry):
            event.update({"event": entry.event, **entry.fields})
        return event

    target = stream if stream is not None else sys.stderr
    rendering = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
        if json
        else [
            # Plain tracebacks: rich ones may show local variables, and with them what nobody wants in a log.
            structlog.dev.ConsoleRenderer(colors=target.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    )
    handler = _Handler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                unpack,
            ],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    _ROOT.setLevel(level.upper() if isinstance(level, str) else level)
    for old in [old for old in _ROOT.handlers if isinstance(old, _Handler)]:
        _ROOT.removeHandler(old)
    _ROOT.addHandler(handler)
    _ROOT.propagate = False  # a handler on the root would write every line a second time
