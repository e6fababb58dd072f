import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.alignment import Aligned
from logprob_drift.floor import as_served
from logprob_drift.identity import NEEDS, Fit, judge, judge_samples, unexplained


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return (logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)).astype(np.float32)


def rows(count: int, seed: int = 1, size: int = 200) -> np.ndarray:
    return log_softmax(3 * np.random.default_rng(seed).standard_normal((count, size)))


def left(model: np.ndarray, served: np.ndarray, k: int = 20) -> np.ndarray:
    return np.array([unexplained(row, as_served(q, k)) for row, q in zip(model, served, strict=True)])


def noisy(logprobs: np.ndarray, sd: float, seed: int) -> np.ndarray:
    return log_softmax(logprobs + sd * np.random.default_rng(seed).standard_normal(logprobs.shape))


P = rows(64)
OTHER = noisy(P, 0.8, 5)  # another checkpoint
THIRD = noisy(P, 0.8, 6)


def test_a_model_leaves_nothing_of_its_own_answers_unexplained() -> None:
    assert left(P, P).max() < 1e-6
    assert left(OTHER, P).min() > 1e-3


@given(seed=st.integers(0, 10_000), k=st.integers(1, 40), scale=st.floats(0.01, 5))
def test_what_is_unexplained_is_a_lower_bound_of_the_whole_divergence(
    seed: int, k: int, scale: float
) -> None:
    q = rows(1, seed)[0]
    p = noisy(q, scale, seed + 1)
    whole = float((np.exp(q.astype(np.float64)) * (q.astype(np.float64) - p)).sum())

    assert 0 <= unexplained(p, as_served(q, k)) <= whole + 1e-5


def test_a_cell_of_several_ids_has_their_joint_probability() -> None:
    row = log_softmax(np.array([1.0, 1.0, 0.0, -1.0]))
    joint = float(np.logaddexp(row[0], row[1]))
    seen = Aligned(((0, 1), (2,)), (joint, float(row[2])), float(np.exp(row[3])))

    assert unexplained(row, seen) == pytest.approx(0, abs=1e-6)


def test_a_token_that_a_model_excludes_leaves_much_and_never_infinity() -> None:
    row = np.array([0.0, -np.inf, -np.inf], dtype=np.float32)
    half = float(np.log(0.5))

    assert 40 < unexplained(row, Aligned(((0,), (1,)), (half, half), 0.0)) < 50


def test_the_model_that_was_served_explains_the_answers() -> None:
    served = noisy(OTHER, 0.03, 7)
    found = judge(left(P, served), {"third": left(THIRD, served), "other": left(OTHER, served)}, rng())

    assert found.best is not None
    assert (found.fit, found.best.name, found.n) == (Fit.EXPLAINS, "other", 64)
    assert found.candidates[1].fit is Fit.NO
    assert found.level_with_best == ()
    assert found.divergence is not None
    assert found.best.remaining == pytest.approx(found.divergence - (found.best.gain or 0))
    assert found.best.remaining < 0.01 * found.divergence
    interval = found.best.interval
    assert interval is not None
    assert interval.low is not None
    assert 0 < interval.low < (found.best.gain or 0)


@pytest.mark.parametrize("others", [1, 5])
@pytest.mark.parametrize("sd", [0.03, 0.3, 0.8])
def test_a_coarser_precision_of_the_reference_is_no_other_model(others: int, sd: float) -> None:
    served = noisy(P, sd, 8)
    registered = {f"other-{i}": left(noisy(P, 0.8, 20 + i), served) for i in range(others)}

    found = judge(left(P, served), registered, rng())

    assert found.fit is Fit.NO
    assert all(one.fit is Fit.NO for one in found.candidates)


def test_a_model_that_leaves_most_of_the_divergence_is_only_closer() -> None:
    served = noisy(OTHER, 0.03, 7)
    halfway = log_softmax(0.9 * P + 0.1 * OTHER)

    found = judge(left(P, served), {"halfway": left(halfway, served)}, rng())

    assert found.fit is Fit.CLOSER


def test_two_models_that_explain_equally_well_are_level() -> None:
    served = noisy(OTHER, 0.1, 7)
    twins = {name: left(noisy(OTHER, 0.05, seed), served) for name, seed in (("a", 30), ("b", 31))}

    found = judge(left(P, served), {**twins, "third": left(THIRD, served)}, rng())

    assert found.fit is Fit.EXPLAINS
    assert {found.candidates[0].name, *found.level_with_best} == {"a", "b"}


@pytest.mark.parametrize("count", [0, 1, NEEDS - 1])
def test_too_few_prompts_are_unknown_and_say_how_many_are_missing(count: int) -> None:
    served = OTHER[:count]
    found = judge(left(P[:count], served), {"other": left(OTHER[:count], served)}, rng())

    assert found.fit is Fit.UNKNOWN
    assert found.n + found.missing == NEEDS
    assert found.detectable is None


def test_without_registered_models_nothing_is_known() -> None:
    found = judge(left(P, OTHER), {}, rng())

    assert (found.fit, found.best, found.detectable) == (Fit.UNKNOWN, None, None)


@pytest.mark.parametrize(("spike", "by_half"), [(0.0, True), (100.0, False)])
def test_the_detectable_gain_is_the_least_that_explains(spike: float, by_half: bool) -> None:
    """Half the divergence decides where prompts agree, the limit of the mean where they do not."""
    reference = np.full(64, 1.0)
    reference[:5] += spike
    found = judge(reference, {"r": np.full(64, 0.1)}, rng())
    assert found.best is not None
    gain = found.best.gain
    assert gain is not None
    assert found.detectable is not None

    def with_gain(wanted: float) -> Fit:
        return judge(reference, {"r": np.full(64, 0.1 + gain - wanted)}, rng()).fit

    assert with_gain(1.001 * found.detectable) is Fit.EXPLAINS
    assert with_gain(0.999 * found.detectable) is not Fit.EXPLAINS
    assert bool(found.detectable == pytest.approx(reference.mean() / 2)) is by_half


def test_more_registered_models_need_more_evidence() -> None:
    gains = rng(4).normal(0.25, 1.0, 64)
    gains += 0.9 * gains.std() / 8 * 3 - gains.mean()
    reference = np.full(64, 10.0)
    alone = judge(reference, {"r": reference - gains}, rng())
    among = judge(reference, {"r": reference - gains, **{f"x{i}": reference + 5 for i in range(19)}}, rng())

    assert alone.best is not None
    assert among.best is not None
    assert alone.best.fit is Fit.CLOSER
    assert among.best.fit is Fit.NO
    assert alone.best.interval is not None
    assert among.best.interval is not None
    assert among.best.interval.level > alone.best.interval.level


def test_the_answer_depends_on_the_seed_alone() -> None:
    served = noisy(OTHER, 0.5, 7)
    reference, other = left(P, served), left(OTHER, served)

    assert judge(reference, {"other": other}, rng()) == judge(reference, {"other": other}, rng())


def test_margins_of_greedy_tokens_count_by_their_tokens() -> None:
    tokens = np.tile([1.0, 9.0], 32)
    reference = np.tile([0.0, 9.0], 32)

    found = judge(reference, {"r": np.zeros(64)}, rng(), tokens=tokens)

    assert found.divergence == pytest.approx(0.9)
    assert found.fit is Fit.EXPLAINS


def test_samples_are_judged_by_their_log_likelihood_ratio() -> None:
    drawn = [rng(i).choice(200, 20, p=np.exp(q) / np.exp(q).sum()) for i, q in enumerate(OTHER)]
    scores = {
        name: np.array([float((r[x] - p[x]).sum()) for r, p, x in zip(model, P, drawn, strict=True)])
        for name, model in (("other", OTHER), ("third", THIRD))
    }

    found = judge_samples(scores, np.full(64, 20.0), rng())

    assert found.best is not None
    assert (found.best.name, found.fit, found.best.remaining) == ("other", Fit.EXPLAINS, None)
    assert found.candidates[1].fit is Fit.NO


def test_samples_of_the_reference_itself_are_no_other_models() -> None:
    drawn = [rng(i).choice(200, 20, p=np.exp(p) / np.exp(p).sum()) for i, p in enumerate(P)]
    sums = np.array([float((r[x] - p[x]).sum()) for r, p, x in zip(OTHER, P, drawn, strict=True)])

    assert judge_samples({"other": sums}, np.full(64, 20.0), rng()).fit is Fit.NO


def surer_on_the_references_choices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A model that is the reference at half its temperature: its greedy choices are the same."""
    surer = log_softmax(2 * P.astype(np.float64))
    return surer, P.argmax(axis=1), np.arange(64)


def test_a_surer_model_gains_by_the_score_of_greedy_tokens_but_not_by_their_margins() -> None:
    surer, chosen, each = surer_on_the_references_choices()
    score = (surer[each, chosen] - P[each, chosen]).astype(np.float64)
    margins = [(m.max(axis=1) - m[each, chosen]).astype(np.float64) for m in (P, surer)]

    assert judge_samples({"surer": score}, np.ones(64), rng()).fit is Fit.EXPLAINS
    assert judge(margins[0], {"surer": margins[1]}, rng(), tokens=np.ones(64)).fit is Fit.NO


def test_input_that_cannot_be_is_refused() -> None:
    ones = np.ones(20)
    with pytest.raises(ValueError, match="beside"):
        judge(ones, {"r": np.ones(19)}, rng())
    with pytest.raises(ValueError, match="r: what a model leaves"):
        judge(ones, {"r": -ones}, rng())
    with pytest.raises(ValueError, match="the reference"):
        judge(ones * np.nan, {"r": ones}, rng())
    with pytest.raises(ValueError, match="at least one token"):
        judge(ones, {"r": ones}, rng(), tokens=0 * ones)
    with pytest.raises(ValueError, match="r: a score"):
        judge_samples({"r": ones * np.inf}, ones, rng())
