"""Which requests are asked again, after how long, and what stays on record."""

from __future__ import annotations

import asyncio

import pytest

from probes.budget import Budget
from ringtrue.records import FailureKind, Request
from tests.contract.fakes import HELLO, SteppedClock, endpoint_at
from tests.contract.fault_server import Act, Script, chat_answer, error_script, json_script, serve

FINE = json_script(chat_answer("fine"))
THRICE = {"max_attempts": 3}


async def test_a_429_is_retried_after_the_time_the_server_asked_for() -> None:
    steps = SteppedClock()
    busy = error_script(429, "slow down", headers={"retry-after": "7"})
    async with serve(busy, FINE) as server, endpoint_at(server.url, steps=steps, limits=THRICE) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert (exchange.error, exchange.text) == (None, "fine")
    assert steps.slept == [7.0]
    first, second = exchange.attempts
    assert first.failure is not None
    assert (first.failure.kind, first.failure.retry_after, first.waited) == (
        FailureKind.RATE_LIMITED,
        7.0,
        7.0,
    )
    assert (second.number, second.failure, second.sent - first.sent) == (2, None, 7.0)


async def test_a_retry_after_date_is_obeyed() -> None:
    steps = SteppedClock()  # it is noon on the first of March 2026
    busy = error_script(503, "restarting", headers={"retry-after": "Sun, 01 Mar 2026 12:00:20 GMT"})
    async with serve(busy, FINE) as server, endpoint_at(server.url, steps=steps, limits=THRICE) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is None
    assert steps.slept == [20.0]


async def test_a_longer_wait_than_allowed_means_giving_up_and_says_so() -> None:
    steps = SteppedClock()
    busy = error_script(429, "come back tomorrow", headers={"retry-after": "86400"})
    limits = {"max_attempts": 3, "max_retry_wait": 60.0}
    async with serve(busy, FINE) as server, endpoint_at(server.url, steps=steps, limits=limits) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.RATE_LIMITED
    assert exchange.error.retry_after == 86400.0
    assert "asking to wait 86400 s" in exchange.error.message
    assert "Gave up: that is longer than limits.max_retry_wait = 60 s" in exchange.error.message
    assert (steps.slept, len(server.seen)) == ([], 1)


async def test_a_429_pauses_every_request_of_the_endpoint() -> None:
    steps = SteppedClock()
    busy = error_script(429, "slow down", headers={"retry-after": "30"})
    limits = {"max_attempts": 1}
    async with serve(busy, FINE) as server, endpoint_at(server.url, steps=steps, limits=limits) as endpoint:
        refused = await endpoint.send(HELLO)
        other = await endpoint.send(Request(id="other", prompt="x"))
    assert refused.error is not None
    assert steps.slept == [30.0]
    assert other.error is None
    assert other.timings.scheduled == 100.0
    assert other.timings.sent == 130.0


@pytest.mark.parametrize(
    "fault", [error_script(500, "boom"), Script((Act.CLOSE,), raw=True)], ids=["500", "hang-up"]
)
async def test_a_transient_fault_is_retried_with_jittered_backoff_and_stays_on_record(fault: Script) -> None:
    steps = SteppedClock()
    async with (
        serve(fault, fault, FINE) as server,
        endpoint_at(server.url, steps=steps, limits=THRICE) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
    assert (exchange.error, exchange.text) == (None, "fine")
    assert [attempt.failure is None for attempt in exchange.attempts] == [False, False, True]
    assert [attempt.waited for attempt in exchange.attempts] == [*steps.slept, 0.0]
    assert 0.0 <= steps.slept[0] <= 0.5
    assert 0.0 <= steps.slept[1] <= 1.0


async def test_a_timeout_is_retried() -> None:
    limits = {"max_attempts": 2, "first_byte_timeout": 0.05, "connect_timeout": 0.05}
    async with (
        serve(Script((Act.HANG,)), FINE) as server,
        endpoint_at(server.url, limits=limits) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
    assert exchange.error is None
    assert exchange.attempts[0].failure is not None
    assert exchange.attempts[0].failure.kind is FailureKind.FIRST_BYTE_TIMEOUT


async def test_attempts_end_at_their_limit_with_the_last_failure() -> None:
    async with serve(error_script(500, "boom")) as server, endpoint_at(server.url, limits=THRICE) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.SERVER_ERROR
    assert exchange.error.message.endswith("Gave up after 3 attempts")
    assert (len(exchange.attempts), len(server.seen)) == (3, 3)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422])
async def test_a_request_that_was_refused_is_never_retried(status: int) -> None:
    async with (
        serve(error_script(status, "no")) as server,
        endpoint_at(server.url, limits=THRICE) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert (len(exchange.attempts), len(server.seen)) == (1, 1)


async def test_a_retry_that_the_budget_does_not_cover_is_not_sent() -> None:
    budget = Budget(max_requests=2)
    async with (
        serve(error_script(500, "boom")) as server,
        endpoint_at(server.url, limits=THRICE, budget=budget) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
        unsent = await endpoint.send(HELLO)
    assert len(server.seen) == 2
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.SERVER_ERROR
    assert "budget of this run is spent" in exchange.error.message
    assert unsent.error is not None
    assert unsent.error.kind is FailureKind.BUDGET
    assert unsent.attempts == ()
    assert unsent.timings.sent is None


async def test_cancelling_a_request_closes_its_connection_and_leaves_the_endpoint_usable() -> None:
    async with serve(Script((Act.HANG,)), FINE) as server, endpoint_at(server.url) as endpoint:
        hanging = asyncio.create_task(endpoint.send(HELLO))
        await server.asked.wait()
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        exchange = await endpoint.send(HELLO)
    assert exchange.error is None
    assert [seen.connection for seen in server.seen] == [0, 1]
