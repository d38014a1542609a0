from __future__ import annotations

import json
import logging
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import datetime

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore.logs import bind_conversation, get_logger
from rounds import some_quick


class Records(logging.Handler):
    """Keeps the records that reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def lines(self) -> list[str]:
        return [f"{record.levelname} {record.name} {record.getMessage()}" for record in self.records]


@pytest.fixture
def heard() -> Iterator[Records]:
    """Listen to agentcore as a program does that knows the standard library alone."""
    logger, handler = logging.getLogger("agentcore"), Records()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own: how a whole program's logging is set up is global."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=True
    )


def test_the_standard_library_sees_text_and_the_logger_s_name(heard: Records) -> None:
    log = get_logger("agentcore.conversation.run")

    log.info("run started", steps=3, model="x y")
    log.debug("nothing to do")
    get_logger("agentcore_tools.terminal").warning("shell was lost")

    assert heard.lines == [
        "INFO agentcore.conversation.run run started steps=3 model='x y'",
        "DEBUG agentcore.conversation.run nothing to do",
        "WARNING agentcore.tools.terminal shell was lost",
    ]
    assert heard.records[0].funcName == "test_the_standard_library_sees_text_and_the_logger_s_name"


def test_an_exception_is_logged_with_its_trace(heard: Records) -> None:
    try:
        int("seven")
    except ValueError:
        get_logger("agentcore.x").exception("no such thing", code=7)
    assert isinstance((heard.records[0].exc_info or (None, None))[1], ValueError)
    assert heard.lines == ["ERROR agentcore.x no such thing code=7"]


async def test_the_conversation_is_told_to_each_task_of_its_own(heard: Records) -> None:
    log = get_logger("agentcore.x")

    async def work(conversation_id: str) -> None:
        with bind_conversation(conversation_id):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(step)
                await checkpoint()
                tasks.start_soon(step)

    async def step() -> None:
        await checkpoint()
        log.info("step")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, "one")
            tasks.start_soon(work, "two")
    log.info("done")

    assert sorted(heard.lines) == [
        "INFO agentcore.x done",
        *["INFO agentcore.x step conversation_id='one'"] * 2,
        *["INFO agentcore.x step conversation_id='two'"] * 2,
    ]


def test_what_nobody_listens_to_is_not_even_looked_at(heard: Records) -> None:
    class Costly:
        def __repr__(self) -> str:
            raise AssertionError("it was rendered")

    logging.getLogger("agentcore").setLevel(logging.WARNING)

    get_logger("agentcore.x").info("not shown", thing=Costly())

    assert heard.records == []


def test_a_program_that_does_not_listen_hears_nothing() -> None:
    ended = run(
        """
        import sys
        from agentcore.logs import get_logger

        for name in ("agentcore.x", "agentcore_tools.x", "agentcore_serve.x"):
            get_logger(name).error("loud", reason="none")
        assert "structlog" not in sys.modules
        """
    )

    assert ended.stdout == ended.stderr == ""


def test_json_lines_hold_the_event_and_its_fields() -> None:
    ended = run(
        """
        import logging
        from pathlib import Path
        from agentcore.logs import bind_conversation, configure_logging, get_logger

        configure_logging(json=True, level="debug")
        logging.basicConfig()
        log = get_logger("agentcore.x")
        with bind_conversation("20261121-aa"):
            log.debug("run started", steps=3, where=Path("there"), event="e", level="l")
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("it broke")
        logging.getLogger("agentcore.y").warning("said %s", "plainly")
        """
    )

    first, second, third = (json.loads(line) for line in ended.stderr.splitlines())
    assert ended.stdout == ""
    assert datetime.fromisoformat(first.pop("timestamp")).utcoffset() is not None
    assert first == {
        "level": "debug",
        "logger": "agentcore.x",
        "event": "run started",
        "steps": 3,
        "where": "there",
        "event_": "e",
        "level_": "l",
        "conversation_id": "20261121-aa",
    }
    assert (second["level"], second["event"]) == ("error", "it broke")
    assert "ZeroDivisionError" in second["exception"]
    assert (third["level"], third["logger"], third["event"]) == ("warning", "agentcore.y", "said plainly")
    assert third["timestamp"].endswith("Z")


def test_a_person_reads_lines_without_local_variables_and_configuring_again_replaces_what_was() -> None:
    ended = run(
        """
        import sys
        from agentcore.logs import configure_logging, get_logger

        def work():
            password = "hun" + "ter2"
            raise OSError("no network")

        configure_logging(json=True, level="error")
        configure_logging(json=False, stream=sys.stdout)
        log = get_logger("agentcore.x")
        log.info("run started", steps=3)
        log.debug("too much detail")
        try:
            work()
        except OSError:
            log.exception("it broke")
        """
    )

    first, *rest = ended.stdout.splitlines()
    assert "info" in first
    assert "run started" in first
    assert first.endswith("steps=3")
    assert "too much detail" not in ended.stdout
    assert any("OSError: no network" in line for line in rest)
    assert "hunter2" not in ended.stdout
    assert "\x1b" not in ended.stdout, "colours are for terminals"
    assert ended.stderr == "", "configuring again replaces what was"


@pytest.mark.parametrize(
    "wrapper",
    some_quick(
        ["structlog.make_filtering_bound_logger(20)", "structlog.BoundLogger", "structlog.stdlib.BoundLogger"], 3
    ),
)
def test_a_structlog_that_the_program_configured_gets_the_events(wrapper: str) -> None:
    ended = run(
        f"""
        import logging, sys
        import structlog
        from agentcore.logs import bind_conversation, get_logger

        log = get_logger("agentcore.x")
        log.error("before it is configured")
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class={wrapper},
            logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        )
        structlog.contextvars.bind_contextvars(request="r1")
        with bind_conversation("c1"):
            log.info("run started", steps=3, event="e")
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("it broke")
        logging.getLogger("agentcore").setLevel("ERROR")
        log.warning("not wanted")
        """
    )

    first, second = (json.loads(line) for line in ended.stdout.splitlines())
    assert ended.stderr == ""
    assert first == {
        "event": "run started",
        "level": "info",
        "logger": "agentcore.x",
        "steps": 3,
        "event_": "e",
        "conversation_id": "c1",
        "request": "r1",
    }
    assert (second["level"], second["event"]) == ("error", "it broke")
    assert "ZeroDivisionError" in second["exception"]


def test_a_structlog_that_ends_in_the_standard_library_writes_each_line_once() -> None:
    ended = run(
        """
        import logging, sys
        import structlog
        from agentcore.logs import get_logger

        logging.basicConfig(stream=sys.stdout, level="INFO", format="%(name)s %(message)s")
        structlog.configure(
            processors=[
                structlog.stdlib.filter_by_level,
                structlog.stdlib.add_logger_name,
                structlog.processors.KeyValueRenderer(key_order=["event"]),
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
        )
        get_logger("agentcore.x").info("run started", steps=3)
        get_logger("agentcore.x").debug("too much detail")
        """
    )

    assert ended.stdout.splitlines() == ["agentcore.x event='run started' logger='agentcore.x' steps=3"]
