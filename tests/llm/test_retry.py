from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import AuthenticationError, ModelConnectionError, ModelUnavailable, RateLimited
from agentcore.llm import CallContext, Delta, ResetDelta, RetryingModel, RetryPolicy, RetryReport, TextDelta
from agentcore.messages import Message
from agentcore.testing import ScriptedLLM, ScriptLine, truncated

ASK = [Message.user("Hello?")]
AT_ONCE = RetryPolicy(retries=2, min_wait=0, max_wait=0)


class Retried:
    """A script behind a retrying model, and what was reported of it."""

    def __init__(self, *lines: ScriptLine, policy: RetryPolicy = AT_ONCE) -> None:
        self.scripted = ScriptedLLM(lines)
        self.model = RetryingModel(self.scripted, policy)
        self.reports: list[RetryReport] = []
        self.context = CallContext(on_retry=self._report)

    async def _report(self, report: RetryReport) -> None:
        await anyio.lowlevel.checkpoint()
        self.reports.append(report)

    async def deltas(self) -> list[Delta]:
        async with self.model.stream(ASK, context=self.context) as stream:
            return [delta async for delta in stream]


async def test_a_failed_call_is_tried_again_and_each_failure_told() -> None:
    errors = [RateLimited("slow down"), ModelUnavailable("down")]
    retried = Retried(*errors, "Hi.")
    reply = await retried.model.complete(ASK, context=retried.context)
    assert reply.message.text == "Hi."
    assert [(report.attempt, report.error) for report in retried.reports] == [(1, errors[0]), (2, errors[1])]


async def test_the_last_error_is_raised_when_the_attempts_are_used_up() -> None:
    last = ModelUnavailable("still down")
    retried = Retried(ModelUnavailable("down"), ModelUnavailable("down"), last, "Too late.")
    with pytest.raises(ModelUnavailable) as raised:
        await retried.model.complete(ASK, context=retried.context)
    assert raised.value is last
    assert len(retried.reports) == 2


def refused() -> ModelConnectionError:
    """Give the error of a server that is not there, as it comes: the system's own is behind it."""
    error = ModelConnectionError("no connection")
    error.__cause__ = OSError("All connection attempts failed")
    error.__cause__.__cause__ = ExceptionGroup("attempts", [OSError("no route"), ConnectionRefusedError("refused")])
    return error


async def test_where_nobody_listens_at_the_first_call_it_is_given_up_soon() -> None:
    scripted = ScriptedLLM(lambda _: refused())
    model = RetryingModel(scripted, RetryPolicy(min_wait=1_000, max_wait=1_000, refused_wait=0))
    with pytest.raises(ModelConnectionError) as raised, anyio.fail_after(30):
        await model.complete(ASK, context=CallContext(first=True))
    assert raised.value.refused
    assert len(scripted.requests) == 1 + RetryPolicy().refused_retries


def test_where_somebody_listened_before_or_a_connection_broke_it_is_tried_again_as_ever() -> None:
    policy = RetryPolicy()
    broken = ModelConnectionError("the connection broke")
    assert not broken.refused
    for attempt in range(1, policy.retries + 1):
        usual = policy.delay(attempt, broken, 0)
        assert usual is not None
        assert policy.delay(attempt, refused(), 0) == policy.delay(attempt, broken, 0, first=True) == usual
    assert RetryPolicy(retries=0).delay(1, refused(), 0, first=True) is None


async def test_an_error_that_trying_again_cannot_mend_is_raised_at_once() -> None:
    retried = Retried(AuthenticationError("no key"), "Never.")
    with pytest.raises(AuthenticationError):
        await retried.model.complete(ASK, context=retried.context)
    with pytest.raises(ZeroDivisionError):
        await RetryingModel(ScriptedLLM([ZeroDivisionError()]), AT_ONCE).complete(ASK)
    assert retried.reports == []


async def test_a_stream_that_fails_before_its_first_delta_starts_over_without_a_word() -> None:
    retried = Retried(RateLimited("slow down"), truncated("never", after=0), "Hi.")
    assert await retried.deltas() == [TextDelta(text="Hi.")]
    assert len(retried.reports) == 2


async def test_a_stream_that_breaks_after_deltas_says_that_they_are_void() -> None:
    retried = Retried(truncated("one two", after=1), RateLimited("slow down"), "three")
    deltas = await retried.deltas()
    assert deltas == [
        TextDelta(text="one"),
        ResetDelta(reason="The stream ended before the reply was complete."),
        TextDelta(text="three"),
    ]
    assert len(retried.reports) == 2


async def test_a_stream_whose_attempts_are_used_up_raises_the_last_error() -> None:
    retried = Retried(*[truncated("one two", after=1)] * 3, "Too late.")
    seen: list[Delta] = []
    with pytest.raises(ModelConnectionError):
        async with retried.model.stream(ASK) as stream:
            seen.extend([delta async for delta in stream])
    assert len(retried.scripted.requests) == 3


async def test_cancelling_ends_the_wait_between_attempts() -> None:
    retried = Retried(RateLimited("slow down"), "Never.", policy=RetryPolicy(min_wait=3600, max_wait=3600))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(retried.deltas)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert len(retried.reports) == 1
    assert retried.reports[0].delay > 1800


def test_waits_grow_up_to_their_bound() -> None:
    policy = RetryPolicy(jitter=0)
    error = ModelUnavailable("down")
    assert [policy.delay(attempt, error, 0) for attempt in range(1, 7)] == [8, 16, 32, 64, 64, None]
    assert RetryPolicy(retries=10_000, jitter=0).delay(9_999, error, 0) == 64


def test_a_provider_that_names_a_time_is_not_asked_before_it() -> None:
    assert RetryPolicy(jitter=0).delay(1, RateLimited("slow down", retry_after=100), 0) == 100
    assert RetryPolicy().delay(1, RateLimited("slow down", retry_after=100), 1) == 125
    assert RetryPolicy().delay(1, RateLimited("tomorrow", retry_after=80_000), 0) is None
    assert RetryPolicy().delay(1, RateLimited("at once", retry_after=0), 1) == 0


@given(st.integers(1, 5), st.floats(0, 1), st.floats(0, 1))
def test_jitter_only_shortens_a_wait_of_our_own_and_by_no_more_than_its_part(
    attempt: int, jitter: float, draw: float
) -> None:
    whole = RetryPolicy(jitter=0).delay(attempt, ModelUnavailable("down"), draw)
    part = RetryPolicy(jitter=jitter).delay(attempt, ModelUnavailable("down"), draw)
    assert whole is not None
    assert part is not None
    assert whole * (1 - jitter) * 0.999 <= part <= whole
