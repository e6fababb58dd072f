from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from reference_engine.baselines.building import Build, build_baseline
from reference_engine.baselines.exact import ExactScores
from reference_engine.baselines.integrity import check_files
from reference_engine.baselines.reading import Baseline
from reference_engine.baselines.recomputing import Agreement, choose_sequences, recompute
from ringtrue.errors import ModelError, UsageError
from tests.small_models import byte_level_tokenizer
from tests.unit.reference_engine.baselines.sources import (
    ChangedScores,
    build,
    quiet,
    shifted,
    tiny_request,
)


async def recomputed(baseline, engine, model, indices=range(7)):
    return [result async for result in recompute(baseline, engine, model, indices)]


def elsewhere(request):
    return replace(request, environment=replace(request.environment, threads=99))


@pytest.mark.parametrize("variant", ["", "@bf16", "@fp16", "@int4+bf16"])
async def test_here_a_sequence_is_equal_bit_for_bit_and_so_is_what_its_states_give(
    small, small_engine, corpus, store, variant
):
    model = small_engine.load(f"{small.name}{variant}")
    stored = await build(model, corpus, ExactScores(small_engine, model), store, states=True)
    found = await recomputed(Baseline(stored), small_engine, model)
    assert [result.sequence for result in found] == list(range(7))
    assert [result.positions for result in found] == [len(ids) - 1 for ids in corpus]
    assert {(result.agreement, result.largest, result.from_states) for result in found} == {
        (Agreement.EQUAL, 0.0, 0.0)
    }


async def test_half_precision_states_are_stored_in_half_the_room(small, small_engine, corpus, store):
    model = small_engine.load(f"{small.name}@bf16")
    stored = await build(model, corpus, ExactScores(small_engine, model), store, states=True)
    assert stored.manifest.request.states == "bfloat16"
    assert stored.manifest.request.state_bytes == 128


async def test_without_states_nothing_is_said_of_them(small, small_engine, corpus, source, store):
    stored = await build(small, corpus, source, store)
    (result,) = await recomputed(Baseline(stored), small_engine, small, [3])
    assert (result.agreement, result.from_states) == (Agreement.EQUAL, None)


async def test_the_smallest_change_is_a_difference_in_the_same_environment(
    small, small_engine, corpus, source, store
):
    stored = await build(small, corpus, ChangedScores(source, shifted(1e-5)), store)
    (result,) = await recomputed(Baseline(stored), small_engine, small, [3])
    assert result.agreement is Agreement.DIFFERENT
    assert result.largest == pytest.approx(1e-5, rel=0.1)


@pytest.mark.parametrize(
    ("amount", "agreement"),
    [(0.0, Agreement.EQUAL), (1e-4, Agreement.WITHIN), (1e-3, Agreement.DIFFERENT)],
)
async def test_in_another_environment_a_tolerance_decides(
    small, small_engine, corpus, source, store, amount, agreement
):
    order = Build(corpus, elsewhere(tiny_request(small, corpus)))
    stored, _ = await build_baseline(order, ChangedScores(source, shifted(amount)), store, quiet())
    (result,) = await recomputed(Baseline(stored), small_engine, small, [3])
    assert result.agreement is agreement


async def test_states_of_another_pass_are_found_out(small, small_engine, corpus, source, store):
    def moved(_, block):
        return replace(block, states=block.states * np.float32(1.01))

    stored = await build(small, corpus, ChangedScores(source, moved), store, states=True)
    (result,) = await recomputed(Baseline(stored), small_engine, small, [3])
    assert result.agreement is Agreement.DIFFERENT
    assert result.largest == 0
    assert result.from_states > 1e-4


async def test_half_precision_in_another_environment_stays_undecided(small, small_engine, corpus, store):
    model = small_engine.load(f"{small.name}@bf16")
    changed = ChangedScores(ExactScores(small_engine, model), shifted(0.01))
    order = Build(corpus, elsewhere(tiny_request(model, corpus)))
    stored, _ = await build_baseline(order, changed, store, quiet())
    (result,) = await recomputed(Baseline(stored), small_engine, model, [3])
    assert result.agreement is Agreement.UNDECIDED


async def test_a_model_of_other_weights_is_refused(small, small_engine, corpus, source, store):
    baseline = Baseline(await build(small, corpus, source, store))
    with pytest.raises(ModelError, match=r"@int8 has other weights.*--model"):
        await recomputed(baseline, small_engine, small_engine.load(f"{small.name}@int8"))


async def test_the_scores_of_a_server_are_not_recomputed_bit_for_bit(
    small, small_engine, corpus, source, store
):
    request = replace(tiny_request(small, corpus), source={"kind": "served"})
    stored, _ = await build_baseline(Build(corpus, request), source, store, quiet())
    with pytest.raises(UsageError, match="came from a server"):
        await recomputed(Baseline(stored), small_engine, small)


async def test_the_sample_depends_on_the_seed_alone(small, corpus, source, store):
    baseline = Baseline(await build(small, corpus, source, store))
    samples = [choose_sequences(baseline, 3, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    assert choose_sequences(baseline, 99, np.random.default_rng(0)) == list(range(7))


async def test_a_mixture_of_experts_is_built_and_verified(small_engine, corpus, store, tmp_path):
    config = Qwen3MoeConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=48,
        moe_intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        Qwen3MoeForCausalLM(config).save_pretrained(tmp_path / "moe")
    byte_level_tokenizer().save_pretrained(tmp_path / "moe")
    model = small_engine.load(str(tmp_path / "moe"))
    stored = await build(model, corpus, ExactScores(small_engine, model), store, states=True, k=258)
    assert not any(file.damage for file in check_files(stored))
    found = await recomputed(Baseline(stored), small_engine, model)
    assert {result.agreement for result in found} == {Agreement.EQUAL}
