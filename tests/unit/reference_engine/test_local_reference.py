import asyncio
import threading

import numpy as np
import pytest

from reference_engine.local_reference import LocalReference, open_reference, open_references
from ringtrue.errors import ModelError

SENTENCE = "A reference is asked the same question by many and answers it once. "


@pytest.fixture
def fresh(engine):
    """A reference that remembers nothing yet."""
    return LocalReference(engine, engine.load("smollm2-135m"))


def test_it_describes_its_model(reference):
    assert reference.model == "smollm2-135m"
    assert (reference.context_length, reference.vocabulary_size) == (8_192, 49_152)
    assert len(bytes.fromhex(reference.fingerprint)) == 32


def test_text_goes_to_ids_and_back(reference):
    text = "def f():\n\treturn 'naïve 中文 🎉 <|im_end|>'\n"
    ids = reference.encode(text)
    assert reference.decode(ids) == text
    assert b"".join(map(reference.token_bytes, ids)) == text.encode()
    assert not {0, 1, 2} & set(ids)


def test_a_chat_is_rendered_with_the_default_system_and_generation_prompt(reference):
    text = reference.decode(reference.render([{"role": "user", "content": "hi"}]))
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


async def test_a_row_is_a_distribution(reference):
    row = await reference.next_token(reference.encode(SENTENCE))
    assert row.shape == (49_152,)
    assert row.dtype == np.float32
    assert np.exp(row.astype(np.float64)).sum() == pytest.approx(1, abs=1e-4)


async def test_the_same_ids_are_computed_once_also_when_asked_at_once(engine, fresh):
    ids = fresh.encode(SENTENCE)
    before = engine.counters.batched_prompts
    first, second = await asyncio.gather(fresh.next_token(ids), fresh.next_token(list(ids)))
    third = await fresh.next_token(ids)
    assert first is second is third
    assert engine.counters.batched_prompts - before == 1


async def test_rows_are_read_only(fresh):
    row = await fresh.next_token(fresh.encode(SENTENCE))
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 0


async def test_the_memory_of_rows_is_bounded(engine, fresh, monkeypatch):
    monkeypatch.setattr(fresh, "_most_rows", 2)
    for ids in ((5, 6), (5, 7), (5, 8)):
        await fresh.next_token(ids)
    before = engine.counters.batched_prompts
    await fresh.next_token((5, 8))
    assert engine.counters.batched_prompts == before
    await fresh.next_token((5, 6))
    assert engine.counters.batched_prompts == before + 1


async def test_a_waiter_that_goes_away_does_not_take_the_row_from_the_other(fresh):
    ids = fresh.encode(SENTENCE * 2)
    leaving, staying = (asyncio.create_task(fresh.next_token(ids)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).shape == (49_152,)
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_a_failed_row_is_asked_again(engine, fresh, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("once")

    with monkeypatch.context() as patch:
        patch.setattr("reference_engine.worker.next_token_logprobs", broken)
        with pytest.raises(Exception, match="once"):
            await fresh.next_token((5, 9))
    assert np.isfinite(await fresh.next_token((5, 9))).all()


async def test_jitter_in_fp32_changes_rows_within_the_tolerance_and_keeps_their_order(reference):
    sequences = [reference.encode(SENTENCE)[:length] for length in (15, 3, 14, 9, 15)]
    rows = await reference.jittered(sequences, dtype="fp32", seed=1)
    for row, ids in zip(rows, sequences, strict=True):
        assert np.abs(row - await reference.next_token(ids)).max() <= 2e-4


async def test_jitter_in_bf16_is_reproducible_and_close_but_not_equal(reference):
    sequences = [reference.encode(SENTENCE * 3)[:length] for length in (40, 38, 39, 36)]
    first = await reference.jittered(sequences, dtype="bf16", seed=1)
    again = await reference.jittered(sequences, dtype="bf16", seed=1)
    other = await reference.jittered(sequences, dtype="bf16", seed=2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    exact = [await reference.next_token(ids) for ids in sequences]
    kl = np.mean([np.sum(np.exp(p) * (p - q)) for p, q in zip(exact, first, strict=True)])
    assert 1e-5 < kl < 0.01


async def test_no_sequences_give_no_rows(reference):
    assert await reference.jittered([], dtype="fp32", seed=0) == []


async def test_a_dtype_that_does_not_exist_is_refused(reference):
    with pytest.raises(ModelError, match="fp8"):
        await reference.jittered([(1, 2)], dtype="fp8", seed=0)


def test_a_reference_in_less_than_float32_is_refused(engine):
    with pytest.raises(ModelError, match="fp32"):
        LocalReference(engine, engine.load("smollm2-135m@bf16"))


async def test_a_reference_of_its_own_ends_its_engine(small_model):
    reference = await asyncio.to_thread(open_reference, str(small_model), device="cpu")
    await reference.next_token((1, 2, 3))
    await reference.aclose()
    assert not reference.engine._worker._thread.is_alive()


def test_a_reference_that_cannot_be_opened_leaves_no_thread(tmp_path):
    before = threading.active_count()
    with pytest.raises(ModelError):
        open_reference(str(tmp_path), device="cpu")
    assert threading.active_count() == before


async def test_forced_rows_are_those_of_the_next_token_after_each_prefix(reference):
    ids = reference.encode(SENTENCE)
    forced = await reference.forced(ids[:5], ids[5:9], k=3)
    assert forced.chosen.shape == (4,)
    assert forced.top_ids.shape == forced.top.shape == (4, 3)
    for at in range(4):
        row = await reference.next_token(ids[: 5 + at])
        assert forced.chosen[at] == pytest.approx(row[ids[5 + at]], abs=2e-4)
        assert forced.top_ids[at, 0] == row.argmax()
        assert forced.top[at, 0] == pytest.approx(row.max(), abs=2e-4)


async def test_greedy_tokens_are_the_likeliest_after_each_prefix_until_one_ends_the_answer(reference):
    prompt = reference.render([{"role": "user", "content": "Say yes."}])
    tokens = await reference.greedy(prompt, max_tokens=6)
    for at, token in enumerate(tokens):
        assert token == (await reference.next_token((*prompt, *tokens[:at]))).argmax()
    longer = await reference.greedy(prompt, max_tokens=40)
    assert longer[: len(tokens)] == tokens
    assert len(longer) == 40 or reference.decode(longer[-1:]) == "<|im_end|>"


async def test_references_opened_together_share_one_engine_and_what_is_equal(small_model):
    base = str(small_model)
    first, variant = await asyncio.to_thread(open_references, (base, f"{base}@int4"), device="cpu")
    assert first.engine is variant.engine
    assert [first.model, variant.model] == [base, f"{base}@int4"]
    shared = [m._loaded.network.get_input_embeddings().weight for m in (first, variant)]
    assert shared[0].data_ptr() == shared[1].data_ptr()
    rows = [await reference.next_token((1, 2, 3)) for reference in (first, variant)]
    assert not np.array_equal(*rows)
    await variant.aclose()
    assert first.engine._worker._thread.is_alive()
    await first.aclose()
    assert not first.engine._worker._thread.is_alive()


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (("{}", "{}@bf16"), "fp32, not in bf16"),
        (("{}", "{}@int4", "{}@fp32+int4"), "named twice"),
        (("{}", "{}@int7"), "int7"),
        (("{}", "{}@int4:layers=99"), "layer"),
    ],
)
def test_references_that_cannot_be_opened_together_leave_no_thread(small_model, names, match):
    before = threading.active_count()
    with pytest.raises(ModelError, match=match):
        open_references([name.format(small_model) for name in names], device="cpu")
    assert threading.active_count() == before


def test_no_names_give_no_references():
    before = threading.active_count()
    assert open_references(()) == ()
    assert threading.active_count() == before
