import numpy as np
import pytest

from logprob_drift.token_only.greedy_margins import (
    CLIP,
    choice_margins,
    compare_with_replay,
    night_number,
    prompt_margins,
    token_margins,
)
from ringtrue.records import State

NAN = float("nan")


def honest(rng: np.random.Generator, prompts: int, flips: float = 0.03, tokens: int = 50) -> np.ndarray:
    """Per-prompt means where now and then a near tie falls the other way."""
    margins = rng.exponential(0.05, (prompts, tokens)) * (rng.random((prompts, tokens)) < flips)
    return np.clip(margins, 0, CLIP).mean(axis=1)


def test_a_margin_is_the_distance_to_the_best_token_clipped() -> None:
    found = token_margins(np.array([-0.1, -0.5, -1.0, -0.2]), np.array([-0.1, -0.8, -9.0, -np.inf]))

    assert found == pytest.approx([0, 0.3, CLIP, CLIP])


def test_rounding_of_the_reference_is_no_error_but_a_better_token_is() -> None:
    assert token_margins(np.array([-1.0]), np.array([-0.9999]))[0] == 0
    with pytest.raises(ValueError, match="more likely"):
        token_margins(np.array([-1.0]), np.array([-0.9]))


@pytest.mark.parametrize(("best", "chosen"), [([NAN], [-1.0]), ([-1.0], [NAN]), ([-np.inf], [-np.inf])])
def test_what_is_no_number_is_refused(best: list[float], chosen: list[float]) -> None:
    with pytest.raises(ValueError, match="not a number"):
        token_margins(np.array(best), np.array(chosen))


def test_prompts_weigh_alike_however_long_their_answers() -> None:
    found = prompt_margins(np.array([0.5, 0.1, 0.1, 0.1]), np.array([0, 2, 2, 2]), 3)

    assert found[[0, 2]] == pytest.approx([0.5, 0.1])
    assert np.isnan(found[1])
    assert night_number(found) == pytest.approx(0.3)


def test_nothing_answered_is_not_measured() -> None:
    assert night_number(np.array([NAN, NAN])) is None
    night = compare_with_replay(np.full(80, NAN), np.zeros(80), np.random.default_rng(0))

    assert (night.state, night.n, night.mean) == (State.UNKNOWN, 0, None)


def test_too_few_prompts_are_unknown_however_large_the_difference() -> None:
    night = compare_with_replay(np.full(63, 0.4), np.zeros(63), np.random.default_rng(0))

    assert night.state is State.UNKNOWN
    assert night.n + 1 == night.needed


def test_an_honest_endpoint_is_not_changed() -> None:
    rng = np.random.default_rng(1)
    states = [compare_with_replay(honest(rng, 200), honest(rng, 200), rng).state for _ in range(100)]

    assert states.count(State.CHANGED) == 0


def test_another_precision_is_changed() -> None:
    rng = np.random.default_rng(2)

    night = compare_with_replay(honest(rng, 200, flips=0.15), honest(rng, 200), rng)

    assert night.state is State.CHANGED
    assert night.interval is not None
    assert night.interval.low is not None
    assert night.interval.low > 0


def test_exact_answers_beside_an_exact_replay_are_ok_and_one_odd_prompt_is_no_change() -> None:
    exact = np.zeros(100)
    odd = exact.copy()
    odd[3] = 0.4

    assert compare_with_replay(exact, exact, np.random.default_rng(0)).state is State.OK
    assert compare_with_replay(odd, exact, np.random.default_rng(0)).state is State.OK


def test_the_detectable_margin_is_the_least_that_is_changed() -> None:
    rng = np.random.default_rng(3)
    mine, replay = honest(rng, 200), honest(rng, 200)
    night = compare_with_replay(mine, replay, np.random.default_rng(4))
    assert night.detectable is not None
    assert night.mean is not None
    shift = night.detectable - night.mean

    assert compare_with_replay(mine + 1.02 * shift, replay, np.random.default_rng(4)).state is State.CHANGED
    assert compare_with_replay(mine + 0.98 * shift, replay, np.random.default_rng(4)).state is State.OK


def test_the_margin_of_a_choice_is_read_from_the_list_and_clipped_outside_it() -> None:
    top_ids = np.array([[5, 7], [5, 7], [5, 7], [1, 2]])
    top = np.array([[-0.5, -0.8], [-0.5, -0.8], [-0.5, -0.8], [-0.1, -3.0]])

    found = choice_margins(np.array([5, 7, 9, 2]), top_ids, top)

    assert found == pytest.approx([0, 0.3, CLIP, CLIP])


def test_a_stricter_level_needs_more() -> None:
    rng = np.random.default_rng(5)
    mine, replay = honest(rng, 200, flips=0.06), honest(rng, 200)

    plain = compare_with_replay(mine, replay, np.random.default_rng(6))
    strict = compare_with_replay(mine, replay, np.random.default_rng(6), level=0.9999)

    assert plain.detectable is not None
    assert strict.detectable is not None
    assert strict.detectable > plain.detectable
    assert plain.margin is not None
    assert plain.mean is not None
    assert plain.margin.low is not None
    assert plain.margin.high is not None
    assert plain.margin.low < plain.mean < plain.margin.high


def test_honest_nights_of_two_looks_are_not_changed() -> None:
    """72 prompts of 4 tokens, then 200 of 50, each at half the errors; ties turned over by noise."""
    rng = np.random.default_rng(7)

    def look(prompts: int, tokens: int) -> State:
        opened = rng.random((prompts, tokens)) < rng.beta(1.5, 8.5, (prompts, 1))
        gap = np.where(opened, rng.exponential(0.5, (prompts, tokens)), np.inf)
        mine, replay = (
            np.where(gap + 0.09 * rng.standard_normal(gap.shape) < 0, np.minimum(gap, CLIP), 0.0).mean(axis=1)
            for _ in range(2)
        )
        return compare_with_replay(mine, replay, rng, level=0.99).state

    changed = [State.CHANGED in (look(72, 4), look(200, 50)) for _ in range(50)]

    assert sum(changed) <= 2  # nominal 1 %: more than 2 of 50 happen in 1 of 70 runs
