import pytest
import torch

from reference_engine.generation import GenerationSpec
from reference_engine.models.caches import new_cache
from reference_engine.models.rounding import round_rows_to_int8, to_float8
from reference_engine.scoring import hidden_states

IDS = tuple(range(40, 72))


def _states():
    generator = torch.Generator().manual_seed(3)
    return torch.randn(1, 2, 5, 16, generator=generator) * 3, torch.randn(1, 2, 5, 16, generator=generator)


@pytest.mark.parametrize(("kind", "rounding"), [("kv-fp8", to_float8), ("kv-int8", round_rows_to_int8)])
def test_keys_and_values_are_rounded_as_they_are_written(small_engine, small_model, kind, rounding):
    model = small_engine.load(f"{small_model}@{kind}")
    keys, values = _states()
    cache = model.new_cache()
    read = cache.update(keys, values, 1)
    assert torch.equal(read[0], rounding(keys))
    assert torch.equal(read[1], rounding(values))
    # What is there is not rounded again, and what comes is.
    longer = cache.update(keys[:, :, :1], values[:, :, :1], 1)
    assert torch.equal(longer[0][:, :, :5], read[0])
    assert torch.equal(longer[0][:, :, 5:], rounding(keys[:, :, :1]))


def test_a_key_beyond_the_range_saturates(small_engine, small_model):
    keys = torch.full((1, 2, 1, 16), 1e6)
    read, _ = small_engine.load(f"{small_model}@kv-fp8").new_cache().update(keys, keys, 0)
    assert bool((read == 448).all())


def test_only_the_named_layers_are_rounded(small_engine, small_model):
    keys, values = _states()
    model = small_engine.load(f"{small_model}@kv-fp8:layers=1")
    cache = model.new_cache()
    for layer in range(3):
        changed = not torch.equal(cache.update(keys, values, layer)[0], keys)
        assert changed is (layer == 1)
    unrounded = model.new_cache(layers=())
    assert torch.equal(unrounded.update(keys, values, 1)[0], keys)


def test_a_model_that_rounds_its_cache_shares_the_whole_network(small_engine, small_model):
    rounded = small_engine.load(f"{small_model}@int4+kv-fp8")
    assert rounded.network is small_engine.load(f"{small_model}@int4").network
    assert rounded.needs_cache
    assert not small_engine.load(f"{small_model}@int4").needs_cache


@pytest.mark.parametrize("kind", ["kv-fp8", "kv-int8"])
def test_a_rounded_cache_shows_in_the_logprobs_of_one_pass_and_of_chunks_alike(
    small_engine, small_model, kind
):
    exact = small_engine.start_score(small_engine.load(str(small_model)), IDS).result()
    model = small_engine.load(f"{small_model}@{kind}")
    one = small_engine.start_score(model, IDS).result()
    chunks = small_engine.start_batch(model, [IDS], [7, 20]).result()[0]
    assert 1e-7 < abs(one - exact).max() < 0.1
    assert abs(one - chunks).max() < 1e-4


async def test_generation_reads_the_rounded_cache(small_engine, small_model):
    model = small_engine.load(f"{small_model}@kv-fp8")
    steps = [step async for step in small_engine.generate(model, IDS, GenerationSpec(max_tokens=4))]
    ids = list(IDS)
    for step in steps:
        row = small_engine.start_score(model, ids).result()
        assert step.logprob == pytest.approx(row[step.token_id], abs=1e-4)
        ids.append(step.token_id)


def test_a_cache_without_rounding_is_the_exact_pass(small_engine, small_model):
    model = small_engine.load(str(small_model))
    ids = torch.tensor([IDS])

    def states(cache):
        with torch.inference_mode():
            return hidden_states(model, ids, cache=cache)

    assert torch.equal(states(new_cache(model.network.config, {})), states(None))
