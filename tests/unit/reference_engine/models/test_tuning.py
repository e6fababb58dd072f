import pytest
import torch

from reference_engine.engine import Engine
from reference_engine.models.changes import Training
from reference_engine.models.tuning import trained, tuning_text
from ringtrue.errors import ModelError

STEP = "tuned:steps=1:rate=1e-3"


def _weights(model):
    return dict(model.network.named_parameters())


def _loss(engine, model):
    """Of the whole text, in nats a token, over windows that fill the context."""
    ids = model.codec.encode(tuning_text())
    starts = range(0, len(ids) - model.context_length, model.context_length)

    def mean():
        with torch.inference_mode():
            losses = []
            for start in starts:
                window = torch.tensor([ids[start : start + model.context_length]])
                logits = model.network(window).logits[0, :-1]
                losses.append(torch.nn.functional.cross_entropy(logits, window[0, 1:]))
            return float(torch.stack(losses).mean())

    return engine.call(mean).result()


def test_a_step_lowers_the_loss_and_more_steps_lower_it_further(small_engine, small_model, small):
    one = small_engine.load(f"{small_model}@{STEP}")
    ten = small_engine.load(f"{small_model}@tuned:steps=10:rate=1e-3")
    losses = [_loss(small_engine, model) for model in (small, one, ten)]
    assert losses[0] > losses[1] > losses[2]


def test_the_first_step_moves_no_weight_by_more_than_the_rate(small_engine, small_model, small):
    tuned = _weights(small_engine.load(f"{small_model}@{STEP}"))
    for name, weight in _weights(small).items():
        moved = (tuned[name] - weight).abs()
        assert moved.max() == pytest.approx(1e-3, rel=1e-2), name


def test_training_is_reproduced_bit_by_bit_and_its_seed_chooses_what_is_read(small_engine, small_model):
    first = _weights(small_engine.load(f"{small_model}@{STEP}"))
    other = _weights(small_engine.load(f"{small_model}@{STEP}:seed=1"))
    with Engine(device="cpu") as engine:
        again = _weights(engine.load(f"{small_model}@{STEP}"))
    assert all(torch.equal(weight, again[name]) for name, weight in first.items())
    assert not any(torch.equal(weight, other[name]) for name, weight in first.items() if weight.dim() > 1)


def test_the_model_that_is_tuned_stays_as_it_was(small_model):
    ids = tuple(range(40, 72))
    with Engine(device="cpu") as engine:
        model = engine.load(str(small_model))
        row = engine.start_score(model, ids).result()
        weights = {name: weight.clone() for name, weight in _weights(model).items()}
        for change in (STEP, "tuned:noise=0.1"):
            tuned = engine.load(f"{small_model}@{change}")
            assert not any(p.requires_grad for p in tuned.network.parameters())
            assert abs(engine.start_score(tuned, ids).result() - row).max() > 1e-4
        assert all(torch.equal(weight, weights[name]) for name, weight in _weights(model).items())
        assert (engine.start_score(model, ids).result() == row).all()
        assert not any(p.requires_grad or p.grad is not None for p in model.network.parameters())


def test_noise_has_the_stated_size_on_every_tensor_and_is_reproduced(small_engine, small_model, small):
    noised = _weights(small_engine.load(f"{small_model}@tuned:noise=0.1"))
    for name, weight in _weights(small).items():
        relative = (noised[name] - weight).square().mean().sqrt() / weight.square().mean().sqrt()
        assert float(relative) == pytest.approx(0.1, rel=0.3 if weight.dim() == 1 else 0.05), name
    with Engine(device="cpu") as engine:
        again = _weights(engine.load(f"{small_model}@tuned:noise=0.1"))
        other = _weights(engine.load(f"{small_model}@tuned:noise=0.1:seed=1"))
    assert all(torch.equal(weight, again[name]) for name, weight in noised.items())
    assert not any(torch.equal(weight, other[name]) for name, weight in noised.items())


def test_tied_weights_stay_tied(engine):
    network = engine.load("smollm2-135m@tuned:noise=0.001").network
    assert network.lm_head.weight is network.model.embed_tokens.weight


def test_what_is_rounded_is_the_tuned_weight(small_engine, small_model):
    tuned = small_engine.load(f"{small_model}@{STEP}")
    half = small_engine.load(f"{small_model}@{STEP}+bf16")
    rounded = small_engine.load(f"{small_model}@int4+{STEP}")
    assert torch.equal(half.network.lm_head.weight, tuned.network.lm_head.weight.bfloat16())
    assert rounded.network.lm_head.weight is tuned.network.lm_head.weight
    assert rounded.network.model.layers[0].mlp.up_proj.weight.unique().numel() < 64 * 96


def test_training_that_diverges_is_refused(small_engine, small_model):
    with pytest.raises(ModelError, match="not finite"):
        small_engine.load(f"{small_model}@tuned:steps=3:rate=1e30")


def test_a_model_that_rounds_its_activations_is_not_trained(small_engine, small_model):
    rounding = small_engine.load(f"{small_model}@fp8-dynamic").network
    with pytest.raises(ModelError, match="rounds its activations"):
        trained(rounding, [1, 2, 3], Training(1, 1e-3), window=3, where="here")


def test_every_change_has_a_fingerprint_and_a_model_of_its_own(small_engine, small_model):
    changes = [
        "rope:base=333",
        "rope:base=334",
        STEP,
        f"{STEP}:seed=1",
        "tuned:steps=1:rate=2e-3",
        "tuned:steps=2:rate=1e-3",
        "tuned:noise=0.1",
        "tuned:noise=0.1:seed=1",
        "tuned:noise=0.1+rope:base=333",
        "tuned:noise=0.1+int4",
    ]
    models = [small_engine.load(f"{small_model}@{change}") for change in changes]
    for attribute in ("fingerprint", "weights_hash"):
        assert len({getattr(model, attribute) for model in models}) == len(changes)
    assert small_engine.load(f"{small_model}@int4+tuned:noise=1e-1:seed=0") is models[-1]
