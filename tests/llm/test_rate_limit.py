from __future__ import annotations

import anyio
import pytest

from agentcore.errors import ModelConnectionError, RateLimited
from agentcore.llm import RateLimitedModel, RetryingModel, RetryPolicy, TokenBucket
from agentcore.messages import Message
from agentcore.testing import ScriptedLLM, say, truncated
from agentcore.usage import Usage

ASK = [Message.user("Hello?")]


class Time:
    """A clock that moves only when somebody sleeps by it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        self.slept.append(round(seconds, 3))
        self.now += seconds

    def bucket(self, per_minute: float, burst: float | None = None) -> TokenBucket:
        return TokenBucket(per_minute, burst, clock=self.clock, sleep=self.sleep)


async def test_a_full_bucket_gives_at_once_and_then_as_it_flows() -> None:
    time = Time()
    bucket = time.bucket(60, burst=3)
    for _ in range(5):
        await bucket.take()
    assert time.slept == [1, 1]
    time.now += 1000
    for _ in range(4):
        await bucket.take()
    assert time.slept == [1, 1, 1]


async def test_more_than_a_bucket_holds_is_given_when_it_is_full_and_owed_after() -> None:
    time = Time()
    bucket = time.bucket(60, burst=10)
    await bucket.take(25)
    assert time.slept == []
    await bucket.take(1)
    assert time.slept == [16]


async def test_a_correction_takes_more_or_gives_back_but_never_over_the_brim() -> None:
    time = Time()
    bucket = time.bucket(60, burst=10)
    await bucket.take(10)
    bucket.correct(-4)
    await bucket.take(4)
    assert time.slept == []
    bucket.correct(5)
    await bucket.take(1)
    assert time.slept == [6]
    bucket.correct(-1000)
    await bucket.take(11)
    await bucket.take(1)
    assert time.slept == [6, 2]


async def test_those_who_wait_are_served_in_order_and_who_gives_up_takes_nothing() -> None:
    wake: list[anyio.Event] = []
    now = 0.0

    async def sleep(seconds: float) -> None:
        del seconds
        wake.append(anyio.Event())
        await wake[-1].wait()

    bucket = TokenBucket(60, burst=1, clock=lambda: now, sleep=sleep)
    served: list[str] = []

    async def take(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            await bucket.take()
            served.append(name)

    with anyio.fail_after(30):
        await bucket.take()
        scopes = {name: anyio.CancelScope() for name in "abcd"}
        async with anyio.create_task_group() as tasks:
            for name, scope in scopes.items():
                tasks.start_soon(take, name, scope)
                await anyio.wait_all_tasks_blocked()
            assert len(wake) == 1  # only the first one sleeps, the others stand behind it
            scopes["a"].cancel()
            scopes["c"].cancel()
            await anyio.wait_all_tasks_blocked()
            now += 2
            wake[-1].set()
            await anyio.wait_all_tasks_blocked()
            now += 2
            wake[-1].set()
    assert served == ["b", "d"]


async def test_requests_are_counted_one_by_one() -> None:
    time = Time()
    model = RateLimitedModel(ScriptedLLM(["Hi."], repeat=True, name="inside"), requests=time.bucket(6, burst=1))
    await model.complete(ASK)
    async with model.stream(ASK) as stream:
        async for _ in stream:
            pass
    assert stream.reply.message.text == "Hi."
    assert time.slept == [10]
    assert model.name == "inside"


async def test_tokens_are_estimated_and_then_corrected_by_what_was_used() -> None:
    time = Time()
    said = say("Hi there.", usage=Usage(input_tokens=500, output_tokens=100))
    model = RateLimitedModel(
        ScriptedLLM([said], repeat=True), tokens=time.bucket(600, burst=600), estimate=lambda messages, _: len(messages)
    )
    await model.complete(ASK)
    await model.complete(ASK)  # waits for the one that is estimated
    assert time.slept == [0.1]
    async with model.stream(ASK) as stream:  # and this one for what was used besides
        async for _ in stream:
            pass
    assert time.slept == [0.1, 60]
    await model.complete(ASK)
    assert time.slept == [0.1, 60, 60]


async def test_an_estimate_stands_where_nobody_says_what_was_used() -> None:
    time = Time()
    inside = ScriptedLLM([truncated("one two"), "one two", "No usage.", "Hi."])
    model = RateLimitedModel(inside, tokens=time.bucket(60, burst=30), estimate=lambda messages, _: 10 * len(messages))
    with pytest.raises(ModelConnectionError):
        async with model.stream(ASK) as stream:
            async for _ in stream:
                pass
    async with model.stream(ASK) as stream:
        await anext(stream)
    await model.complete(ASK)
    assert time.slept == []
    await model.complete(ASK)
    assert time.slept == [10]


async def test_each_attempt_of_a_models_own_retries_counts() -> None:
    time = Time()
    retried = RetryingModel(ScriptedLLM([RateLimited("slow down"), "Hi."]), RetryPolicy(min_wait=0, max_wait=0))
    await RateLimitedModel(retried, requests=time.bucket(60, burst=1)).complete(ASK)
    assert time.slept == [1]


async def test_waiting_ends_when_it_is_cancelled_and_leaves_its_request_to_others() -> None:
    requests, tokens = TokenBucket(1, burst=2), TokenBucket(1)
    model = RateLimitedModel(ScriptedLLM(["Hi."] * 2), requests=requests, tokens=tokens)
    await model.complete(ASK)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(model.complete, ASK)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        await requests.take()
    assert "waiting=0" in repr(tokens)


def test_a_bucket_serves_one_event_loop_after_another() -> None:
    bucket = TokenBucket(60_000, burst=1)

    async def drain() -> None:
        with anyio.fail_after(30):
            for _ in range(5):
                await bucket.take()

    anyio.run(drain)
    anyio.run(drain, backend="trio")
    anyio.run(drain)


@pytest.mark.parametrize(("per_minute", "burst"), [(0, None), (-1, 5), (5, 0)])
def test_a_bucket_that_never_gives_is_refused(per_minute: float, burst: float | None) -> None:
    with pytest.raises(ValueError, match="nothing ever passes"):
        TokenBucket(per_minute, burst)
