import asyncio
import threading
from contextlib import aclosing

import numpy as np
import pytest

from reference_engine.engine import Engine
from reference_engine.generation import GenerationSpec
from reference_engine.tasks import RowTask
from ringtrue.errors import MeasureError, ModelError, UsageError

CHAT = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def model(engine):
    return engine.load("smollm2-135m")


@pytest.fixture
def held(engine):
    """An event that, until it is set, keeps the engine thread busy."""
    release = threading.Event()
    holder = engine.call(lambda: release.wait(60))
    yield release
    release.set()
    assert holder.result()


def _passes(engine) -> int:
    return engine.call(lambda: engine.counters.forward_passes).result()


async def _generate(engine, model, ids, **spec):
    return [step async for step in engine.generate(model, ids, GenerationSpec(**spec))]


async def test_greedy_generation_answers_the_question(engine, model, reference):
    steps = await _generate(engine, model, reference.render(CHAT), max_tokens=20, stop_ids=model.eos_ids)
    text = reference.decode([step.token_id for step in steps])
    assert text == "The capital of France is Paris.<|im_end|>"
    assert [step.finish_reason for step in steps] == [None] * 7 + ["stop"]


async def test_decoded_logprobs_agree_with_the_prompt_s_own(engine, model, reference):
    prompt = reference.render(CHAT)
    steps = await _generate(engine, model, prompt, max_tokens=5)
    ids = [*prompt, *(step.token_id for step in steps)]
    scores = await engine.score_prompt(model, ids, 1)
    assert np.allclose(scores.logprobs[-5:], [step.logprob for step in steps], rtol=0, atol=2e-4)


async def test_generation_ends_at_max_tokens(engine, model, reference):
    steps = await _generate(engine, model, reference.render(CHAT), max_tokens=3)
    assert [step.finish_reason for step in steps] == [None, None, "length"]


async def test_logprobs_are_of_the_unprocessed_distribution(engine, model, reference):
    prompt = reference.render(CHAT)
    row = await reference.next_token(prompt)
    (step,) = await _generate(engine, model, prompt, max_tokens=1, temperature=2.0, top_p=0.5, top=3, seed=4)
    assert step.logprob == pytest.approx(float(row[step.token_id]), abs=2e-4)
    assert [token_id for token_id, _ in step.top] == np.argsort(-row)[:3].tolist()


async def test_a_seed_reproduces_an_answer(engine, model, reference):
    prompt = reference.render(CHAT)
    answers = [
        [s.token_id for s in await _generate(engine, model, prompt, max_tokens=6, temperature=1.5, seed=seed)]
        for seed in (1, 1, 2)
    ]
    assert answers[0] == answers[1] != answers[2]


async def test_concurrent_requests_share_forward_passes(engine, model, reference, held):
    sequences = [reference.encode(f"{word} fishes swim in the sea") for word in ("One", "Two", "Red", "Blue")]
    before = engine.counters.forward_passes
    scoring = [engine.start_score(model, ids) for ids in sequences]
    answers = [asyncio.create_task(_generate(engine, model, ids, max_tokens=1)) for ids in sequences]
    await asyncio.sleep(0)  # the tasks submit on their first turn
    held.set()
    rows = await asyncio.gather(*map(asyncio.wrap_future, scoring))
    steps = await asyncio.gather(*answers)
    assert _passes(engine) - before == 1
    for row, (step,) in zip(rows, steps, strict=True):
        assert step.token_id == int(row.argmax())


async def test_a_prompt_rides_on_a_longer_one_unless_a_fault_comes_between(engine, model, reference, held):
    ids = reference.encode("Nothing before the border may change, everything after it must. " * 3)
    asked = [(ids, None), (ids, None), (ids[:20], None), (ids[:20], 20), (ids, 20), (ids[:21], 20)]
    before = engine.counters.forward_passes
    jobs = [engine.start_score(model, prompt, corrupt_beyond=beyond) for prompt, beyond in asked]
    held.set()
    rows = await asyncio.gather(*map(asyncio.wrap_future, jobs))
    assert _passes(engine) - before == 1
    alone = [
        await asyncio.wrap_future(engine.start_score(model, prompt, corrupt_beyond=beyond))
        for prompt, beyond in asked
    ]
    for row, single in zip(rows, alone, strict=True):
        assert np.abs(row - single).max() <= 2e-4
    assert np.abs(rows[0] - rows[4]).max() > 0.5


async def test_a_cancelled_request_is_never_run(engine, model, reference, held):
    before = engine.counters.forward_passes
    engine.start_score(model, reference.encode("nobody waits for this")).cancel()
    held.set()
    assert await asyncio.to_thread(_passes, engine) == before


async def test_a_closed_generation_stops_at_once(engine, model, reference):
    spec = GenerationSpec(max_tokens=500)
    async with aclosing(engine.generate(model, reference.render(CHAT), spec)) as steps:
        await anext(steps)
    _passes(engine)  # the turn in progress may still draw one token
    assert _passes(engine) == _passes(engine)


async def test_a_long_generation_does_not_starve_scoring(engine, model, reference):
    spec = GenerationSpec(max_tokens=500)
    async with aclosing(engine.generate(model, reference.render(CHAT), spec)) as steps:
        await anext(steps)
        row = await reference.next_token(reference.encode("Meanwhile, somewhere else"))
        assert np.isfinite(row).all()
        assert (await anext(steps)).finish_reason is None


async def test_a_job_that_fails_fails_alone(engine, model, reference, held):
    good = reference.encode("a good prompt of some length")
    bad = RowTask(model, (10**7,) * len(good), None, lambda row: row)
    scoring = [engine.start_score(model, good)]
    engine._worker.submit(bad)
    scoring.append(engine.start_score(model, good))
    held.set()
    for row in await asyncio.gather(*map(asyncio.wrap_future, scoring)):
        assert np.isfinite(row).all()
    with pytest.raises(MeasureError, match="the engine failed"):
        bad.future.result()


async def test_a_generation_that_fails_says_why_and_leaves_the_thread_alive(engine, model, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("reference_engine.generation.hidden_states", broken)
    with pytest.raises(MeasureError, match="out of luck"):
        await _generate(engine, model, (1, 2), max_tokens=2)
    assert _passes(engine) >= 0


@pytest.mark.parametrize(
    ("ids", "message"),
    [((), "no tokens"), ((1, 49_152), "outside"), ((-1,), "outside"), ((1,) * 8_193, "8193")],
)
async def test_an_impossible_prompt_is_refused_before_it_costs_anything(engine, model, ids, message):
    with pytest.raises(UsageError, match=message):
        engine.start_score(model, ids)
    with pytest.raises(UsageError, match=message):
        await _generate(engine, model, ids, max_tokens=2)


async def test_closing_fails_what_waits_and_refuses_more(small_model):
    engine = Engine(device="cpu")
    model = await asyncio.wrap_future(engine.start_load(str(small_model)))
    release = threading.Event()
    engine.call(lambda: release.wait(60))
    waiting = engine.start_score(model, (1, 2))
    generation = asyncio.create_task(_generate(engine, model, (1, 2), max_tokens=9))
    await asyncio.sleep(0)
    # The held call is what makes close wait; from the moment it is closing, nothing new may start.
    threading.Thread(target=engine.close).start()
    with engine._worker._changed:
        engine._worker._changed.wait_for(lambda: engine._worker._closing, timeout=60)
    release.set()
    for job in (asyncio.wrap_future(waiting), generation):
        with pytest.raises(MeasureError, match="closed"):
            await job
    with pytest.raises(MeasureError, match="closed"):
        engine.start_score(model, (1, 2))


def test_a_device_that_is_not_there_is_a_clear_error():
    with pytest.raises(ModelError, match="cannot be used"):
        Engine(device="abacus")
