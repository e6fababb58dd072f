from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from logprob_drift.token_only.answers import LIMITS, Answers, Fault, detectable_share, judge_answers

NAN = float("nan")
USUAL = np.log(np.tile([8.0, 35.0, 150.0, 150.0], 15))


def answers(lengths: np.ndarray, question: np.ndarray | None = None) -> Answers:
    none = np.zeros(lengths.size, dtype=np.bool_)
    return Answers(
        question=np.arange(lengths.size) if question is None else question,
        length=lengths,
        reasoning=np.full(lengths.size, NAN),
        finish_reasons=("stop",) * lengths.size,
        silent=none,
        empty=none,
        lost=none,
        looping=none,
        flooded=none,
        foreign=none,
    )


def some(count: int, of: int = 60) -> np.ndarray:
    return np.arange(of) < count


def judge(given: Answers):
    return judge_answers(given, USUAL, np.random.default_rng(0))


def test_the_number_is_the_mean_log_length_with_its_interval() -> None:
    lengths = np.exp(USUAL + np.random.default_rng(1).normal(0, 0.3, 60))
    night = judge(answers(lengths))

    assert night.log_length == pytest.approx(np.log(lengths).mean())
    assert night.interval is not None
    assert night.interval.low < night.log_length < night.interval.high
    assert (night.n, night.lengths, night.comparable) == (60, 60, True)


def test_a_night_that_lost_its_long_answers_is_hardly_shorter() -> None:
    lengths = 1.7 * np.exp(USUAL + np.random.default_rng(2).normal(0, 0.3, 60))
    whole = judge(answers(lengths))
    kept = np.flatnonzero(~((USUAL > 5) & (np.arange(60) < 12)))  # 6 of 60
    night = judge(answers(lengths[kept], kept))

    assert whole.log_length is not None
    assert night.log_length == pytest.approx(whole.log_length, abs=0.05)
    assert np.log(lengths[kept]).mean() < whole.log_length - 0.1  # what a plain mean would have said
    assert night.comparable


def test_too_few_lengths_can_be_compared_with_no_night() -> None:
    lengths = np.exp(USUAL)
    lengths[:7] = NAN

    night = judge(answers(lengths))

    assert (night.lengths, night.needed, night.comparable) == (53, 54, False)


def test_answers_without_a_token_have_no_length_and_no_share() -> None:
    night = judge(replace(answers(np.zeros(60)), empty=some(60)))

    assert (night.log_length, night.interval, night.reasoning_share) == (None, None, None)
    assert (night.empty.events, night.empty.n) == (60, 60)


def test_the_reasoning_share_is_over_those_whose_reasoning_was_counted() -> None:
    lengths = np.full(60, 30.0)
    reasoning = np.where(some(20), 10.0, NAN)

    night = judge(replace(answers(lengths), reasoning=reasoning))

    assert (night.reasoning_share, night.reasoned) == (pytest.approx(0.25), 20)


def test_a_finish_reason_that_was_not_sent_counts_for_nothing() -> None:
    night = judge(replace(answers(np.exp(USUAL)), finish_reasons=("length", None, "stop") * 20))

    assert (night.capped.events, night.capped.n) == (20, 40)


@pytest.mark.parametrize(("fault", "enough"), [(Fault.FLOODED, 4), (Fault.FOREIGN, 4), (Fault.EMPTY, 8)])
def test_a_fault_is_beyond_its_limit_from_the_detectable_share_on(fault: Fault, enough: int) -> None:
    honest = answers(np.exp(USUAL))

    assert judge(replace(honest, **{fault: some(enough - 1)})).broken == ()
    [broken] = judge(replace(honest, **{fault: some(enough)})).broken

    assert (broken.fault, broken.count.events, broken.detectable) == (fault, enough, enough / 60)
    assert broken.interval.low is not None
    assert broken.interval.low > broken.limit


def test_loops_alone_are_no_fault_of_one_night() -> None:
    night = judge(replace(answers(np.exp(USUAL)), looping=some(60)))

    assert night.broken == ()
    assert night.looping.events == 60


def test_the_fault_furthest_beyond_its_limit_comes_first() -> None:
    both = replace(answers(np.exp(USUAL)), flooded=some(50), foreign=some(6))

    assert [one.fault for one in judge(both).broken] == [Fault.FLOODED, Fault.FOREIGN]


def test_a_few_answers_can_show_no_fault() -> None:
    assert detectable_share(0, 0.02) is None
    assert detectable_share(1, 0.02) == 1.0
    assert detectable_share(1, 0.2) is None


@pytest.mark.parametrize(
    ("fault", "honest", "nights_to_a_false_one"),
    [(Fault.FLOODED, 0.001, 1_000_000), (Fault.FOREIGN, 0.005, 4_000), (Fault.EMPTY, 0.02, 30_000)],
)
def test_an_endpoint_within_its_limits_is_hardly_ever_beyond_them(
    fault: Fault, honest: float, nights_to_a_false_one: int
) -> None:
    """Exact, for independent answers: 60 of them, each wrong with the probability ``honest``."""
    share = detectable_share(60, LIMITS[fault])
    assert share is not None

    assert binom.sf(round(share * 60) - 1, 60, honest) < 1 / nights_to_a_false_one
