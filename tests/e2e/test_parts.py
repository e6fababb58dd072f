"""A night with the parts of an examination over real HTTP: what one next token can't show."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, closing

import pytest
from rich.console import Console

from collector.cycle import CycleResult, Models, over_http, run_cycle
from probes.clock import system_clock
from reference_engine.engine import Engine
from reference_engine.local_reference import LocalReference
from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.config import settings_from
from ringtrue.progress import progress_on
from ringtrue.records import Cause, Check, State, Verdict
from ringtrue.store import Store, open_store
from tests.no_parts import NO_PARTS

MODEL = "smollm2-135m"
FLEET = {
    "honest": Replica(MODEL, f"{MODEL}@bf16"),
    "greedy": Replica(MODEL, f"{MODEL}@bf16", Faults(ignore_temperature=True)),
    "int4": Replica(MODEL, f"{MODEL}@int4+bf16"),
    "int4_silent": Replica(MODEL, f"{MODEL}@int4+bf16", max_logprobs=0),
}
PARTS = NO_PARTS | {"sampled": 256, "greedy": 72, "greedy_tokens": 4, "border": 30}


@pytest.fixture(scope="module")
def night(
    engine: Engine, reference: LocalReference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[CycleResult, Store]]:
    database = tmp_path_factory.mktemp("night") / "ringtrue.db"
    with closing(open_store(f"sqlite:///{database}", clock=system_clock().now)) as store:
        yield asyncio.run(spend_night(engine, reference, store)), store


async def spend_night(engine: Engine, reference: LocalReference, store: Store) -> CycleResult:
    clock = system_clock()
    int4 = LocalReference(engine, await asyncio.to_thread(engine.load, f"{MODEL}@int4"))
    async with AsyncExitStack() as stack:
        addresses = {}
        for name, replica in FLEET.items():
            app = await asyncio.to_thread(create_app, engine, replica)
            addresses[name] = await stack.enter_async_context(serve_app(app))
        progress = stack.enter_context(progress_on(Console(file=io.StringIO())))
        return await run_cycle(
            settings_from(sections(addresses), source="test"),
            store=store,
            models=Models(reference, (int4,)),
            connect=over_http({}, clock),
            clock=clock,
            progress=progress,
        )


def sections(addresses: Mapping[str, str]) -> dict[str, object]:
    return {
        "probe": {"buckets": [[32, 64]]},
        "parts": PARTS,
        "endpoints": [
            {
                "name": name,
                "base_url": f"{address}/v1",
                "model": MODEL,
                "dialect": "openai" if name == "int4_silent" else "vllm",
                "limits": {"max_in_flight": 16, "first_byte_timeout": 900.0},
            }
            for name, address in addresses.items()
        ],
    }


def verdicts_of(night: tuple[CycleResult, Store], endpoint: str) -> dict[Check, Verdict]:
    return {verdict.check: verdict for verdict in night[0].verdicts if verdict.endpoint == endpoint}


def test_an_honest_endpoint_has_no_fault_in_any_part(night: tuple[CycleResult, Store]) -> None:
    found = verdicts_of(night, "honest")
    assert not {check for check, v in found.items() if v.verdict in {State.CHANGED, State.WORSE}}
    assert found[Check.IDENTITY].verdict is State.OK
    assert found[Check.WIRE].verdict is State.OK


def test_an_ignored_temperature_is_sampling_beside_logprobs_that_are_the_models(
    night: tuple[CycleResult, Store],
) -> None:
    found = verdicts_of(night, "greedy")
    assert found[Check.LOGPROBS].verdict is State.OK
    assert (found[Check.SAMPLING].verdict, found[Check.SAMPLING].cause) == (State.CHANGED, Cause.SAMPLING)
    assert "temperature" in found[Check.SAMPLING].reason


def test_coarser_weights_are_numerics_and_the_registered_precision_is_named(
    night: tuple[CycleResult, Store],
) -> None:
    found = verdicts_of(night, "int4")
    assert (found[Check.LOGPROBS].verdict, found[Check.LOGPROBS].cause) == (State.WORSE, Cause.NUMERICS)
    assert f"{MODEL}@int4" in found[Check.LOGPROBS].reason
    assert found[Check.IDENTITY].verdict is State.OK


def test_without_logprobs_coarser_weights_are_found_by_greedy_tokens(
    night: tuple[CycleResult, Store],
) -> None:
    found = verdicts_of(night, "int4_silent")
    assert found[Check.LOGPROBS].verdict is State.UNKNOWN
    assert (found[Check.SAMPLING].verdict, found[Check.SAMPLING].cause) == (State.CHANGED, Cause.NUMERICS)
    assert Cause.IDENTITY in found[Check.SAMPLING].alternatives
    assert found[Check.WIRE].verdict is State.OK


def test_the_numbers_of_the_parts_are_kept_for_the_nights_to_come(night: tuple[CycleResult, Store]) -> None:
    result, store = night
    kept = {(one.endpoint, one.metric) for one in store.observations(result.run)}
    assert ("honest", "sampling_log_e") in kept
    assert {("int4_silent", metric) for metric in ("greedy_margin", "border_violations")} <= kept
