"""Every fault, planted into a real model behind real HTTP, is found where it is and nowhere else.

All replicas stand in one cycle, as they would in one night: they share the
engine, the reference's answers and the noise floor.
"""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from rich.console import Console

from collector.cycle import CycleResult, Models, run_cycle
from probes.budget import Budget
from probes.clock import system_clock
from probes.context_curve import build_prompts
from probes.http_endpoint import HttpEndpoint, connect
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.config import Settings, settings_from
from ringtrue.exit_codes import ExitCode, exit_code
from ringtrue.progress import progress_on
from ringtrue.records import Cause, Check, EndpointSpec, State, Verdict
from ringtrue.report import to_json
from ringtrue.store import Store, open_store
from tests.no_parts import NO_PARTS

MODEL = "smollm2-135m"
BUCKETS = ((32, 64), (256, 4))
FAULTY_FROM = 128  # tokens: between the two buckets
ONSET = 256
LATENCY = 0.05  # seconds
SESSIONS = [f"s{number}" for number in range(8)]  # as evals.asking names them
HALF = Faults(share=0.5)
EITHER = {State.CHANGED, State.WORSE}
CHECKS = (Check.LOGPROBS, Check.CONTEXT, Check.TOKENS, Check.IDENTITY, Check.WIRE)
DESIGNED = {
    "endpoint",
    "model",
    "check",
    "verdict",
    "cause",
    "alternatives",
    "since",
    "metric",
    "value",
    "unit",
    "interval",
    "n",
    "detectable_effect",
    "onset",
    "reason",
    "run",
}


def seed_that_splits(faults: Faults) -> int:
    """A seed with which half of the sessions meet the faults."""
    return next(seed for seed in range(999) if sum(faults.meets(name, seed) for name in SESSIONS) == 4)


@dataclass(frozen=True)
class Served:
    """A replica, and how it is asked."""

    variant: str = "bf16"
    faults: Faults = field(default_factory=Faults)
    dialect: str = "vllm"
    seed: int = 0


FLEET = {
    "honest": Served(),
    "counted": Served(dialect="openai"),
    "slow": Served(faults=Faults(latency_s=LATENCY)),
    "int8": Served("int8+bf16"),
    "int4": Served("int4+bf16"),
    "int3": Served("int3+bf16"),
    "pool": Served("int4+bf16", HALF, seed=seed_that_splits(HALF)),
    "no_generation_prompt": Served(faults=Faults(drop_generation_prompt=True)),
    "no_generation_prompt_counted": Served(faults=Faults(drop_generation_prompt=True), dialect="openai"),
    "double_bos": Served(faults=Faults(double_bos=True)),
    "no_default_system": Served(faults=Faults(drop_default_system=True)),
    "truncated": Served(faults=Faults(truncate_context=FAULTY_FROM)),
    "corrupted": Served(faults=Faults(corrupt_beyond=FAULTY_FROM)),
}


@dataclass(frozen=True)
class Night:
    """One cycle over the fleet, its store still open."""

    result: CycleResult
    store: Store
    database: Path
    delays: Sequence[float]

    def of(self, endpoint: str) -> dict[Check, Verdict]:
        return {verdict.check: verdict for verdict in self.result.verdicts if verdict.endpoint == endpoint}

    def faults(self, endpoint: str) -> dict[Check, Verdict]:
        return {check: verdict for check, verdict in self.of(endpoint).items() if verdict.verdict in EITHER}


@pytest.fixture(scope="module")
def night(
    engine: Engine, reference: LocalReference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Night]:
    database = tmp_path_factory.mktemp("night") / "ringtrue.db"
    delays: list[float] = []
    with closing(open_store(f"sqlite:///{database}", clock=system_clock().now)) as store:
        result = asyncio.run(spend_night(engine, reference, store, delays))
        yield Night(result, store, database, delays)


async def spend_night(
    engine: Engine, reference: LocalReference, store: Store, delays: list[float]
) -> CycleResult:
    clock = system_clock()

    async def delay(seconds: float) -> None:
        delays.append(seconds)
        await asyncio.sleep(seconds)

    def connect_here(spec: EndpointSpec, budget: Budget) -> HttpEndpoint:
        return connect(spec, {}, clock=clock, rng=random.Random(0), budget=budget)  # noqa: S311 - jitter

    async with AsyncExitStack() as stack:
        addresses = {}
        for name, served in FLEET.items():
            replica = Replica(MODEL, f"{MODEL}@{served.variant}", served.faults, seed=served.seed)
            app = await asyncio.to_thread(create_app, engine, replica, sleep=delay)
            addresses[name] = await stack.enter_async_context(serve_app(app))
        progress = stack.enter_context(progress_on(Console(file=io.StringIO())))
        return await run_cycle(
            settings_of(addresses),
            store=store,
            models=Models(reference),
            connect=connect_here,
            clock=clock,
            progress=progress,
        )


def settings_of(addresses: Mapping[str, str]) -> Settings:
    # Many requests under way make full batches; each waits for the batches of all other replicas.
    limits = {"max_in_flight": 16, "first_byte_timeout": 900.0}
    endpoints = [
        {
            "name": name,
            "base_url": f"{address}/v1",
            "model": MODEL,
            "dialect": FLEET[name].dialect,
            "limits": limits,
        }
        for name, address in addresses.items()
    ]
    return settings_from(
        {"endpoints": endpoints, "probe": {"buckets": BUCKETS}, "parts": NO_PARTS}, source="test"
    )


@pytest.mark.parametrize("endpoint", ["honest", "counted", "slow"])
def test_an_honest_replica_is_ok_in_every_check(night: Night, endpoint: str) -> None:
    found = {check: verdict.verdict for check, verdict in night.of(endpoint).items()}
    assert found == dict.fromkeys(CHECKS, State.OK)


def test_a_server_that_shows_no_token_ids_is_judged_by_its_counts_and_the_reason_says_so(
    night: Night,
) -> None:
    assert "token counts fit" in night.of("counted")[Check.TOKENS].reason
    assert "taken as equal because their counts are" in night.of("counted")[Check.LOGPROBS].reason
    assert "counts" not in night.of("honest")[Check.LOGPROBS].reason


@pytest.mark.parametrize("endpoint", ["int4", "int3"])
def test_coarsely_rounded_weights_are_worse_and_blamed_on_the_numerics_alone(
    night: Night, endpoint: str
) -> None:
    (found,) = night.faults(endpoint).values()
    assert (found.check, found.verdict, found.cause) == (Check.LOGPROBS, State.WORSE, Cause.NUMERICS)
    assert found.onset is None
    assert night.of(endpoint)[Check.TOKENS].verdict is State.OK


def test_fewer_bits_lie_further_from_the_model(night: Night) -> None:
    distances = [night.of(name)[Check.LOGPROBS].value or 0.0 for name in ("honest", "int8", "int4", "int3")]
    assert distances == sorted(distances)


def test_eight_bits_are_never_worse(night: Night) -> None:
    verdicts = night.of("int8")
    assert verdicts[Check.LOGPROBS].verdict in {State.OK, State.CHANGED}
    assert {verdict.cause for verdict in night.faults("int8").values()} <= {Cause.NUMERICS}


@pytest.mark.parametrize("endpoint", ["no_generation_prompt", "double_bos", "no_default_system"])
def test_a_template_fault_is_the_prompt_s_and_the_logprobs_on_the_server_s_own_ids_are_ok(
    night: Night, endpoint: str
) -> None:
    (found,) = night.faults(endpoint).values()
    assert (found.check, found.cause) == (Check.TOKENS, Cause.PROMPT)
    logprobs = night.of(endpoint)[Check.LOGPROBS]
    assert logprobs.verdict is State.OK
    assert "on the server's own token IDs" in logprobs.reason


def test_a_template_fault_shows_in_the_token_counts_alone(night: Night) -> None:
    (found,) = night.faults("no_generation_prompt_counted").values()
    assert (found.check, found.cause) == (Check.TOKENS, Cause.PROMPT)
    assert "other token counts" in found.reason
    assert night.of("no_generation_prompt_counted")[Check.LOGPROBS].verdict is State.UNKNOWN


@pytest.mark.parametrize(
    ("endpoint", "said"), [("truncated", f"at most {FAULTY_FROM} tokens"), ("corrupted", "right below 256")]
)
def test_a_long_context_fault_begins_at_its_bucket_and_nothing_below_it_is_blamed(
    night: Night, endpoint: str, said: str
) -> None:
    (found,) = night.faults(endpoint).values()
    assert (found.check, found.cause, found.onset) == (Check.CONTEXT, Cause.CONTEXT, ONSET)
    assert said in found.reason
    below = night.of(endpoint)
    assert {below[check].verdict for check in (Check.LOGPROBS, Check.TOKENS, Check.WIRE)} == {State.OK}


def test_a_fault_of_half_of_the_sessions_is_a_mixture(night: Night) -> None:
    found = night.faults("pool")
    assert {verdict.cause for verdict in found.values()} == {Cause.MIXTURE}
    assert found[Check.LOGPROBS].verdict is State.WORSE
    whole = night.of("int4")[Check.LOGPROBS].value
    half = found[Check.LOGPROBS].value
    assert whole is not None
    assert half is not None
    assert half < whole


def test_latency_alone_is_no_drift(night: Night) -> None:
    assert set(night.delays) == {LATENCY}
    assert len(night.delays) >= sum(count for _, count in BUCKETS)
    assert night.faults("slow") == {}


def test_the_night_as_json_has_every_field_of_every_verdict(night: Night) -> None:
    report = json.loads(to_json(night.result.verdicts))
    assert report.keys() == {"schema", "verdicts"}
    assert report["schema"] == 1
    assert len(report["verdicts"]) == len(CHECKS) * len(FLEET)
    for told, verdict in zip(report["verdicts"], night.result.verdicts, strict=True):
        assert told.keys() == DESIGNED
        assert told["reason"] == verdict.reason
        assert datetime.fromisoformat(told["since"]) == verdict.since
        assert told["run"] == night.result.run
    (measured,) = (v for v in report["verdicts"] if (v["endpoint"], v["check"]) == ("int4", "logprobs"))
    assert (measured["metric"], measured["unit"], measured["n"]) == ("kl", "nats", 68)
    assert measured["interval"]["level"] == 0.98
    assert measured["interval"]["low"] < measured["value"] < measured["interval"]["high"]
    assert 0 < measured["detectable_effect"] < measured["value"]


def test_the_shell_is_told_fine_drift_or_unmeasured(night: Night) -> None:
    assert exit_code(night.result.verdicts) is ExitCode.DRIFT
    assert exit_code(night.of("honest").values()) is ExitCode.FINE
    unknown = [v for v in night.of("double_bos").values() if v.verdict is State.UNKNOWN]
    assert exit_code([*night.of("honest").values(), *unknown]) is ExitCode.UNMEASURED


def test_the_store_keeps_the_verdicts_and_no_word_of_a_prompt(
    night: Night, reference: LocalReference
) -> None:
    assert set(night.store.current_verdicts()) == set(night.result.verdicts)
    kept = b"".join(path.read_bytes() for path in night.database.parent.iterdir())
    prompts = build_prompts(reference, BUCKETS, seed=0)
    assert len(prompts) == 68
    assert night.result.run.encode() in kept
    for prompt in prompts:
        content = prompt.messages[0]["content"]
        middle = len(content) // 2
        assert content[middle - 16 : middle + 16].encode() not in kept
