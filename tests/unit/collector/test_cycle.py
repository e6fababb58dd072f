from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collector.cycle import CycleResult, run_cycle
from collector.lease import NAME, TTL
from evals.examine import Examination
from probes.clock import Clock
from ringtrue.config import Settings, settings_from
from ringtrue.database import open_database
from ringtrue.errors import BudgetError, LeaseHeldError, SecretError, StoreError
from ringtrue.records import Cause, Check, EndpointSpec, Finding, Observation, Party, Severity, State
from ringtrue.store import RunStatus, Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Letters:
    """A reference whose tokens are letters: as much as cutting prompts and counting their cost need."""

    model = "letters"
    fingerprint = "f"
    context_length = 10_000
    vocabulary_size = 0x110000

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))

    def render(self, messages: Sequence[Mapping[str, str]], tools: object = None) -> tuple[int, ...]:
        return self.encode("".join(message["content"] for message in messages))


@dataclass
class Time:
    """A day that passes only when told, and sleepers that wake only when told."""

    now: datetime = NOON
    sleepers: asyncio.Queue[asyncio.Future[None]] = field(default_factory=asyncio.Queue)

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.sleepers.put(woken)
        await woken

    async def wake_one(self) -> None:
        (await self.sleepers.get()).set_result(None)

    def clock(self) -> Clock:
        return Clock(lambda: 0.0, lambda: self.now, self.sleep)


@dataclass
class Said:
    """A progress report that remembers."""

    lines: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)

    def say(self, line: str) -> None:
        self.lines.append(line)

    def begin(self, name: str, total: int) -> None:
        self.done[name] = -total

    def advance(self, name: str, steps: int = 1) -> None:
        self.done[name] += steps


class WatchedStore(Store):
    """A store that lets a test wait until a conclusion was kept."""

    def __init__(self, path: Path, clock: Callable[[], datetime]) -> None:
        super().__init__(open_database(f"sqlite:///{path}"), clock)
        self.concluded = threading.Event()

    def conclude(self, *arguments: Any) -> None:
        super().conclude(*arguments)
        self.concluded.set()


class Connected:
    def __init__(self, spec: EndpointSpec) -> None:
        self.spec = spec
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


def finding(endpoint: str, severity: Severity = Severity.INFO) -> Finding:
    return Finding(endpoint, Check.LOGPROBS, "kl", severity, Party.PROVIDER, Cause.NUMERICS, "as measured")


def observation(endpoint: str, run: str) -> Observation:
    return Observation(endpoint, "context_curve", "kl", 0.1, "nats", 1, NOON, run)


Script = Callable[[Callable[[], Awaitable[None]], str], Awaitable[Sequence[Finding]]]


async def measures(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
    await emit()
    return [finding(name)]


async def never_ends(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
    await asyncio.Event().wait()
    raise AssertionError


@dataclass
class Bench:
    """A cycle with everything around it under control; `scripts` say what examining an endpoint does."""

    store: WatchedStore
    settings: Settings
    time: Time = field(default_factory=Time)
    said: Said = field(default_factory=Said)
    scripts: dict[str, Script] = field(default_factory=dict)
    connected: list[Connected] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    measured: Callable[[str, str], Sequence[Observation]] = lambda name, run: [observation(name, run)]

    async def examine(
        self,
        endpoint: Connected,
        truth: Any,
        plan: object,
        *,
        run: str,
        clock: object,
        emit: Callable[[Sequence[Observation]], Awaitable[None]],
        on_progress: Callable[[int], None],
        record: Callable[[object], None] | None,
    ) -> Examination:
        name = endpoint.spec.name
        self.started.append(name)
        self.said.lines.append(f"examining {name}")
        if record is not None:
            record(SimpleNamespace(endpoint=name))
        on_progress(len(truth.prompts))
        findings = await self.scripts.get(name, measures)(lambda: emit(self.measured(name, run)), name)
        return Examination(name, endpoint.spec.model, tuple(findings))

    def connect(self, spec: EndpointSpec, budget: object) -> Connected:
        self.connected.append(Connected(spec))
        return self.connected[-1]

    async def cycle(self, **options: Any) -> CycleResult:
        return await run_cycle(
            options.pop("settings", self.settings),
            store=self.store,
            reference=Letters(),
            connect=options.pop("connect", self.connect),
            clock=self.time.clock(),
            progress=self.said,
            **options,
        )

    def kept(self) -> tuple[RunStatus, list[str], list[str]]:
        """Return the newest run's status, whose observations it has, and whose verdicts."""
        run = self.store.runs()[0]
        return (
            run.status,
            sorted(observation.endpoint for observation in self.store.observations(run.id)),
            sorted(verdict.endpoint for verdict in self.store.current_verdicts()),
        )


def settings(**sections: object) -> Settings:
    return settings_from(
        {
            "endpoints": [
                {"name": name, "base_url": f"http://{name}/v1", "model": "m"} for name in ("a", "b")
            ],
            "probe": {"buckets": [[32, 4]], "languages": ["english"]},
            **sections,
        },
        source="test",
    )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    time = Time()
    store = WatchedStore(tmp_path / "ringtrue.db", lambda: time.now)
    bench = Bench(store, settings(), time=time)
    monkeypatch.setattr("collector.night.examine", bench.examine)
    yield bench
    store.close()


def lease_is_free(store: Store) -> bool:
    store.acquire_lease(NAME, "test", TTL)
    store.release_lease(NAME, "test")
    return True


async def test_every_endpoint_gets_its_verdicts_and_they_are_stored(bench: Bench) -> None:
    result = await bench.cycle()
    assert [(verdict.endpoint, verdict.verdict) for verdict in result.verdicts] == [
        ("a", State.OK),
        ("b", State.OK),
    ]
    assert bench.kept() == (RunStatus.OK, ["a", "b"], ["a", "b"])
    # Endpoints are examined side by side: which is stored first is nobody's promise.
    assert sorted(finding.endpoint for finding in bench.store.findings(result.run)) == ["a", "b"]
    assert bench.store.current_verdicts() == result.verdicts
    assert lease_is_free(bench.store)
    assert all(endpoint.closed for endpoint in bench.connected)
    assert bench.said.done == {"a": 0, "b": 0}


async def test_a_lasting_change_is_seen_in_the_series_of_nights_and_names_its_first_night(
    bench: Bench,
) -> None:
    def kl_of_the_night(name: str, run: str) -> Sequence[Observation]:
        kl = 0.001 if name == "b" or bench.time.now < NOON + timedelta(days=20) else 0.003
        return [
            Observation(name, "p", metric, value, "nats", 4, bench.time.now, run, context_length=32)
            for metric, value in (("kl_mean", kl), ("k_min", 20.0))
        ]

    async def as_the_model(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await emit()
        tokens = replace(finding(name), check=Check.TOKENS)
        return [replace(finding(name), value=0.001), tokens]

    bench.measured = kl_of_the_night
    bench.scripts = {"a": as_the_model, "b": as_the_model}
    logprobs = []
    for _ in range(28):
        a, _, b, _ = (await bench.cycle()).verdicts
        logprobs.append((a, b))
        bench.time.now += timedelta(days=1)
    assert {a.verdict for a, _ in logprobs[:20]} == {b.verdict for _, b in logprobs} == {State.OK}
    last, other = logprobs[-1]
    assert (last.verdict, last.since) == (State.CHANGED, NOON + timedelta(days=20))
    assert (other.verdict, other.since) == (State.OK, NOON)
    (alarm,) = bench.store.alarms("a", Check.LOGPROBS)
    assert alarm.threshold == 2 * 365  # two endpoints, one bucket, one false alarm a year


async def test_what_it_may_cost_is_said_before_anything_is_sent(bench: Bench) -> None:
    await bench.cycle()
    # At each of two endpoints 4 prompts and 20 requests of the self-test, all tried 3 times, and 4 refusals.
    assert bench.said.lines[0].startswith("At most 152 requests, ")
    assert bench.said.lines[1:] == ["examining a", "examining b"]


async def test_endpoints_are_examined_at_the_same_time(bench: Bench) -> None:
    both = asyncio.Barrier(2)

    async def meets(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await both.wait()
        return [finding(name)]

    bench.scripts = {"a": meets, "b": meets}
    async with asyncio.timeout(10):
        assert len((await bench.cycle()).verdicts) == 2


async def test_an_interrupted_cycle_keeps_what_it_has_and_says_so(bench: Bench) -> None:
    emitted = asyncio.Event()

    async def stays(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await emit()
        emitted.set()
        return await never_ends(emit, name)

    bench.scripts["b"] = stays
    cycle = asyncio.create_task(bench.cycle())
    await emitted.wait()
    await asyncio.to_thread(bench.store.concluded.wait)
    cycle.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await cycle
    run = bench.store.runs()[0]
    assert bench.kept() == (RunStatus.INTERRUPTED, ["a", "b"], ["a"])
    assert run.ended == NOON
    assert str(caught.value) == f"run {run.id} keeps 2 observations and the verdicts of 1 of 2 endpoints"
    assert lease_is_free(bench.store)
    assert all(endpoint.closed for endpoint in bench.connected)


async def test_a_fault_in_one_examination_comes_out_as_itself_and_the_other_verdicts_stay(
    bench: Bench,
) -> None:
    async def breaks(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await asyncio.to_thread(bench.store.concluded.wait)
        raise ZeroDivisionError

    bench.scripts["b"] = breaks
    with pytest.raises(ZeroDivisionError):
        await bench.cycle()
    assert bench.kept() == (RunStatus.FAILED, ["a"], ["a"])
    assert bench.store.runs()[0].reason == "ZeroDivisionError"
    assert lease_is_free(bench.store)


async def test_a_store_that_fills_up_ends_the_cycle_and_keeps_what_it_acknowledged(bench: Bench) -> None:
    acknowledged = 0

    async def fills(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        nonlocal acknowledged
        with bench.store._database.write() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        while True:
            await emit()
            acknowledged += 1

    bench.settings = settings(endpoints=[{"name": "a", "base_url": "http://a/v1", "model": "m"}])
    bench.scripts["a"] = fills
    with pytest.raises(StoreError, match="the disk is full"):
        await bench.cycle()
    assert acknowledged > 0
    (run,) = bench.store.runs()
    assert bench.store.count_observations(run.id) == acknowledged


async def test_a_second_cycle_says_who_holds_the_lease_and_sends_nothing(bench: Bench) -> None:
    bench.store.acquire_lease(NAME, "host-a pid 7", TTL)
    with pytest.raises(LeaseHeldError, match="host-a pid 7 runs a cycle here since 2026-03-01 12:00:00Z"):
        await bench.cycle()
    assert bench.started == []
    assert bench.store.runs() == ()


async def test_a_cycle_that_may_wait_says_so_once_and_runs_when_the_first_is_done(bench: Bench) -> None:
    bench.store.acquire_lease(NAME, "host-a pid 7", TTL)
    cycle = asyncio.create_task(bench.cycle(wait=True))
    await bench.time.wake_one()
    still_waiting = await bench.time.sleepers.get()
    assert bench.started == []
    bench.store.release_lease(NAME, "host-a pid 7")
    still_waiting.set_result(None)
    await cycle
    assert [line for line in bench.said.lines if line.startswith("Waiting")] == [
        "Waiting: host-a pid 7 runs a cycle here since 2026-03-01 12:00:00Z"
    ]
    assert bench.kept()[0] is RunStatus.OK


async def test_a_running_cycle_renews_its_lease(bench: Bench) -> None:
    bench.scripts["b"] = never_ends
    cycle = asyncio.create_task(bench.cycle())
    renewal = await bench.time.sleepers.get()
    bench.time.now += TTL - timedelta(seconds=1)
    renewal.set_result(None)
    await bench.time.sleepers.get()
    bench.time.now += timedelta(seconds=2)
    with pytest.raises(LeaseHeldError):
        bench.store.acquire_lease(NAME, "other", TTL)
    cycle.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cycle


async def test_a_cycle_that_lost_its_lease_stops(bench: Bench) -> None:
    bench.scripts["b"] = never_ends
    cycle = asyncio.create_task(bench.cycle())
    renewal = await bench.time.sleepers.get()
    bench.time.now += TTL
    bench.store.acquire_lease(NAME, "other", TTL)
    renewal.set_result(None)
    with pytest.raises(LeaseHeldError, match="taken over"):
        await cycle
    assert bench.kept()[0] is RunStatus.FAILED
    with pytest.raises(LeaseHeldError, match="other runs a cycle"):
        bench.store.acquire_lease(NAME, "third", TTL)


async def test_a_cycle_beyond_its_budget_is_refused_before_it_connects(bench: Bench) -> None:
    with pytest.raises(BudgetError, match=r"8 requests and .* beyond max_requests = 7; nothing was sent"):
        await bench.cycle(settings=settings(budget={"max_requests": 7}))
    assert bench.connected == []
    assert bench.store.runs() == ()


async def test_a_missing_key_ends_the_cycle_before_anything_is_sent(bench: Bench) -> None:
    def connect(spec: EndpointSpec, budget: object) -> Connected:
        if spec.name == "b":
            raise SecretError("the environment variable B_KEY is not set")
        return bench.connect(spec, budget)

    with pytest.raises(SecretError, match="B_KEY"):
        await bench.cycle(connect=connect)
    assert bench.started == []
    assert bench.store.runs() == ()
    assert [endpoint.closed for endpoint in bench.connected] == [True]


async def test_since_reaches_back_to_the_first_night_of_an_unbroken_series(bench: Bench) -> None:
    await bench.cycle()
    bench.time.now += timedelta(days=1)

    async def drifts(emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        return [finding(name, Severity.FAIL)]

    bench.scripts["b"] = drifts
    result = await bench.cycle()
    assert [(verdict.verdict, verdict.since) for verdict in result.verdicts] == [
        (State.OK, NOON),
        (State.WORSE, NOON + timedelta(days=1)),
    ]


async def test_exchanges_go_to_the_recorder_and_nowhere_else(bench: Bench) -> None:
    recorded: list[Any] = []
    await bench.cycle(recorder=recorded.append)
    assert [exchange.endpoint for exchange in recorded] == ["a", "b"]
