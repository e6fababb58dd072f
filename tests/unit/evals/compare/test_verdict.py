import pytest

from evals.compare.verdict import Outcome, judge_budget
from logprob_drift.full_vocabulary.figure import Figure
from ringtrue.records import Interval


def mean(low: float, high: float) -> Figure:
    return Figure((low + high) / 2, "nats", 32, Interval(low, high, 0.98))


@pytest.mark.parametrize(
    ("figure", "outcome", "code"),
    [
        (mean(0.01, 0.015), Outcome.WITHIN, 0),
        (mean(0.01, 0.02), Outcome.WITHIN, 0),
        (mean(0.01, 0.03), Outcome.UNDECIDED, 0),
        (mean(0.02, 0.03), Outcome.UNDECIDED, 0),
        (mean(0.021, 0.03), Outcome.BEYOND, 1),
        (Figure(9.0, "nats", 3), Outcome.UNMEASURED, 3),
    ],
)
def test_only_a_lower_limit_beyond_the_budget_is_beyond_it(
    figure: Figure, outcome: Outcome, code: int
) -> None:
    verdict = judge_budget(figure, 0.02, needed=7)

    assert verdict.outcome is outcome
    assert verdict.exit_code == code
    assert "budget" in verdict.reason


def test_too_few_sequences_say_how_many_are_needed() -> None:
    verdict = judge_budget(Figure(9.0, "nats", 3), 0.02, needed=7)

    assert verdict.reason == "3 sequences are too few to hold the mean KL against a budget, 7 are needed"
