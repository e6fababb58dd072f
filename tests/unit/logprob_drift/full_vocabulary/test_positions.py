from types import SimpleNamespace

import numpy as np
import pytest

from logprob_drift.full_vocabulary.positions import PositionDivergences, require_floor
from tests.unit.logprob_drift.positions import positions


def rows(kl: list[float]) -> SimpleNamespace:
    values = np.array(kl)
    return SimpleNamespace(
        kl=values,
        reverse_kl=values,
        js=values,
        top1=values < 1,
        logprob_p=np.log(np.full(len(kl), 0.5)),
        logprob_q=np.log(np.full(len(kl), 0.25)),
    )


def test_sequences_are_joined_in_order_with_the_tokens_before_each_position() -> None:
    joined = PositionDivergences.from_sequences([rows([0.1, 0.2, 0.3]), rows([1.5])])

    assert joined.sequence.tolist() == [0, 0, 0, 1]
    assert joined.context.tolist() == [1, 2, 3, 1]
    assert joined.kl.tolist() == [0.1, 0.2, 0.3, 1.5]
    assert joined.top1.tolist() == [True, True, True, False]
    assert joined.delta_p == pytest.approx([-0.25] * 4)


def test_skipping_leaves_out_the_start_of_each_sequence() -> None:
    joined = PositionDivergences.from_sequences([rows([1, 2, 3]), rows([4]), rows([5, 6])])

    kept = joined.skip(1)

    assert kept.kl.tolist() == [2, 3, 6]
    assert kept.context.tolist() == [2, 3, 2]
    clusters, count = kept.clusters
    assert (clusters.tolist(), count) == ([0, 0, 1], 2)


def test_the_half_that_llama_cpp_scores_of_512_tokens_is_255_positions() -> None:
    assert len(positions(np.zeros(511)).skip(256)) == 255


def test_skipping_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="no sequence has more than 3 positions"):
        positions([1, 2, 3]).skip(3)


def test_nothing_scored_is_refused() -> None:
    with pytest.raises(ValueError, match="no position was scored"):
        PositionDivergences.from_sequences([])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_refused_by_its_place_and_never_averaged(bad: float) -> None:
    with pytest.raises(ValueError, match="kl is not finite in sequence 1, after 2 tokens"):
        positions([0, 0, 0, bad], sequence=[0, 0, 1, 1], context=[1, 2, 1, 2])
    with pytest.raises(ValueError, match="logprob_q is not finite"):
        positions([0.0], logprob_q=[-np.inf])


def test_arrays_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"top1 has shape \(1,\), not \(2,\)"):
        positions([0.0, 0.0], top1=[True])


def test_a_floor_needs_a_finite_number_a_position() -> None:
    found = positions([0.1, 0.2])
    require_floor(found, np.zeros(2))
    with pytest.raises(ValueError, match=r"the floor has shape \(1,\)"):
        require_floor(found, np.zeros(1))
    with pytest.raises(ValueError, match="not finite"):
        require_floor(found, np.array([0.0, np.nan]))
