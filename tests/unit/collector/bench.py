"""A cycle with everything around it under control, for tests of the cycle."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from collector.cycle import CycleResult, Models, run_cycle
from collector.lease import NAME, TTL
from evals.examine import Examination
from probes.clock import Clock
from ringtrue.config import Settings, settings_from
from ringtrue.database import open_database
from ringtrue.records import Cause, Check, EndpointSpec, Finding, Observation, Party, Severity
from ringtrue.store import RunStatus, Store
from tests.no_parts import NO_PARTS
from tests.plain_format import PlainFormat

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Letters(PlainFormat):
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
        questions: Any,
        *,
        run: str,
        clock: object,
        emit: Callable[[Sequence[Observation]], Awaitable[None]],
        on_progress: Callable[[int], None],
        record: Callable[[object], None] | None,
        earlier: Mapping[int, object],
    ) -> Examination:
        name = endpoint.spec.name
        self.started.append(name)
        self.said.lines.append(f"examining {name}")
        if record is not None:
            record(SimpleNamespace(endpoint=name))
        on_progress(questions.steps(endpoint.spec))
        findings = await self.scripts.get(name, measures)(lambda: emit(self.measured(name, run)), name)
        return Examination(name, endpoint.spec.model, tuple(findings))

    def connect(self, spec: EndpointSpec, budget: object) -> Connected:
        self.connected.append(Connected(spec))
        return self.connected[-1]

    async def cycle(self, **options: Any) -> CycleResult:
        return await run_cycle(
            options.pop("settings", self.settings),
            store=self.store,
            models=Models(Letters()),
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
            "parts": NO_PARTS,
            **sections,
        },
        source="test",
    )


def lease_is_free(store: Store) -> bool:
    store.acquire_lease(NAME, "test", TTL)
    store.release_lease(NAME, "test")
    return True
