import dataclasses

import numpy as np
import pytest
import torch

from reference_engine.divergence.comparison import compare_models
from reference_engine.divergence.states import ExactStates
from ringtrue.errors import MeasureError, ModelError, UsageError

TEXT = "Nobody asks the reference for its opinion; it is asked for numbers.\n" * 30


def scale_norm(weights):
    weights["model.layers.1.input_layernorm.weight"] *= 1.5


def naive_logprobs(model, ids):
    with torch.inference_mode():
        return torch.log_softmax(model.network(torch.tensor([ids])).logits[0, :-1].double(), dim=-1).numpy()


def test_a_model_against_itself_is_exactly_zero(small_engine, small, sequences):
    for rows, ids in zip(
        compare_models(small_engine, ExactStates(small), small, sequences), sequences, strict=True
    ):
        assert len(rows) == len(ids) - 1
        assert not rows.kl.any()
        assert not rows.delta_p.any()
        assert rows.top1.all()


def test_it_equals_the_naive_computation(small_engine, small, changed, sequences):
    candidate = changed(scale_norm)
    found = compare_models(small_engine, ExactStates(small), candidate, sequences)
    for rows, ids in zip(found, sequences, strict=True):
        p, q = naive_logprobs(small, ids), naive_logprobs(candidate, ids)
        kl = (np.exp(p) * (p - q)).sum(axis=1)
        at = np.arange(len(ids) - 1), np.array(ids[1:])
        # Slices of states give the head other shapes, and so other last bits.
        assert rows.kl == pytest.approx(kl, rel=1e-3, abs=1e-9)
        assert rows.logprob_q == pytest.approx(q[at], abs=1e-4)
        assert rows.delta_p == pytest.approx(np.exp(q[at]) - np.exp(p[at]), abs=1e-5)
        assert (rows.top1 == (p.argmax(axis=1) == q.argmax(axis=1))).all()


def test_coarser_rounding_is_farther(engine, reference):
    exact = engine.load("smollm2-135m")
    ids = reference.encode(TEXT)[:64]
    states = ExactStates(exact)
    fine, coarse = (
        float(compare_models(engine, states, engine.load(f"smollm2-135m@{variant}"), [ids])[0].kl.mean())
        for variant in ("int8", "int4")
    )
    assert 0.0001 < fine < 0.01
    assert 0.05 < coarse < 1.0


def test_every_sequence_is_told_when_it_is_done(small_engine, small, sequences):
    told = []
    compare_models(small_engine, ExactStates(small), small, sequences, advance=told.append)
    assert told == [len(ids) for ids in sequences]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ((), "no tokens"),
        ((5,), "single token"),
        ((1,) * 257, "257 tokens, the model takes 256"),
        ((1, 5_000), "outside"),
    ],
)
def test_a_sequence_that_cannot_be_scored_is_refused_before_any_pass(small_engine, small, ids, message):
    told = []
    with pytest.raises(UsageError, match=message):
        compare_models(small_engine, ExactStates(small), small, [(1, 2), ids], advance=told.append)
    assert told == []


def test_models_of_different_vocabularies_are_refused(small_engine, small, sequences):
    other = dataclasses.replace(small, vocabulary_size=small.vocabulary_size - 1)
    with pytest.raises(ModelError, match="vocabular"):
        compare_models(small_engine, ExactStates(small), other, sequences)


def test_a_head_that_overflows_names_the_models_and_the_position(small_engine, small, changed, sequences):
    def overflow(weights):
        weights["lm_head.weight"][3] = torch.inf

    candidate = changed(overflow)
    with pytest.raises(MeasureError, match="candidate's logits are not numbers at position 0") as caught:
        compare_models(small_engine, ExactStates(small), candidate, sequences)
    assert str(candidate.name) in str(caught.value)


def test_a_token_that_the_candidate_cannot_draw_is_refused_and_not_averaged(small_engine, small, sequences):
    class Masked(type(small)):
        def head(self, hidden):
            logits = super().head(hidden).clone()
            logits[..., 7] = -torch.inf
            return logits

    fields = {field.name: getattr(small, field.name) for field in dataclasses.fields(small)}
    with pytest.raises(MeasureError, match="divergence infinite at position 0"):
        compare_models(small_engine, ExactStates(small), Masked(**fields), sequences)
