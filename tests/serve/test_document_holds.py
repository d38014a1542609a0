"""The OpenAPI document tells the truth: schemathesis makes requests of it, and each answer is one that it describes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import anyio.to_thread
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from agentcore import Agent
from agentcore.testing import ScriptedLLM, say
from agentcore_serve import ServeSettings, create_app
from agentcore_serve.app import ServeApp
from serving import serve

pytestmark = pytest.mark.slow

# Its types are not complete, and it is only needed here.
schemathesis: Any = pytest.importorskip("schemathesis", reason="schemathesis is in the extra test-serve")

_BOUNDS: Final[dict[str, Any]] = {
    "derandomize": True,
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    # To the first fault: what is wrong is clear without its smallest form.
    "phases": [Phase.generate],
}
_EXAMPLES: Final = 15
_SCENARIOS: Final = 15
_STEPS: Final = 8


def _app(folder: Path) -> ServeApp:
    settings = ServeSettings.model_validate(
        {
            "store": folder / "store",
            "root": folder / "root",
            "auth": False,
            "request_limits": {"requests_per_minute": 10_000_000},
        }
    )
    return create_app(settings, agents={"coder": Agent(llm=ScriptedLLM([say("Done.")], repeat=True))})


def _checks() -> list[Any]:
    found = schemathesis.checks
    conformance: Any = import_module("schemathesis.specs.openapi.checks")
    return [
        found.not_a_server_error,
        conformance.status_code_conformance,
        conformance.content_type_conformance,
        conformance.response_schema_conformance,
    ]


def _tame(case: Any) -> None:
    """Have no command run that nobody has read, and wait for nothing."""
    body, query = case.body, case.query
    if case.path.endswith("/commands") and isinstance(body, dict):
        cast("dict[str, Any]", body)["command"] = "true"
    if isinstance(query, dict):
        cast("dict[str, Any]", query).pop("wait", None)


def _load(url: str) -> Any:
    for name in ("httpx", "urllib3", "schemathesis"):
        logging.getLogger(name).setLevel(logging.WARNING)
    schemathesis.serializer.alias("application/x-tar", "application/octet-stream")
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    # A stream has no end, and a WebSocket is none of its business.
    return schema.exclude(path_regex="/(stream|processes)$")


def _check(case: Any, response: Any, faults: list[str]) -> None:
    """Note what is wrong. Raising would have it done again, at a server that is not the same any more."""
    try:
        case.validate_response(response, checks=_checks())
    except BaseExceptionGroup as found:
        text = "; ".join(str(each) for each in found.exceptions)
        faults.append(f"{case.method} {case.path}: {text[:1_000]}\n{case.as_curl_command()[:1_000]}")


def _call_each_operation(url: str) -> list[str]:
    faults: list[str] = []
    for found in _load(url).get_all_operations():
        operation = found.ok()

        @settings(max_examples=_EXAMPLES, **_BOUNDS)
        @given(case=operation.as_strategy())
        def call(case: Any) -> None:
            _tame(case)
            _check(case, case.call(timeout=20), faults)

        call()
    return faults


def _follow_scenarios(url: str) -> list[str]:
    faults: list[str] = []

    class Scenario(_load(url).as_state_machine()):
        def before_call(self, case: Any) -> None:
            _tame(case)

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            _check(case, response, faults)

    Scenario.run(
        settings=settings(max_examples=_SCENARIOS, stateful_step_count=_STEPS, **_BOUNDS),
    )
    return faults


@pytest.mark.parametrize("explore", [_call_each_operation, _follow_scenarios])
async def test_no_answer_is_a_failure_or_one_that_the_document_does_not_have(
    tmp_path: Path, explore: Callable[[str], list[str]]
) -> None:
    with anyio.fail_after(600):
        async with serve(_app(tmp_path)) as server:
            faults = await anyio.to_thread.run_sync(explore, server.url)
    assert not faults, "\n\n".join(faults[:10])
