"""Whether a comparison keeps its budget."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from logprob_drift.full_vocabulary.figure import Figure
from ringtrue.exit_codes import ExitCode


class Outcome(StrEnum):
    """What the interval of the mean KL says of a budget."""

    WITHIN = "within"
    UNDECIDED = "undecided"
    BEYOND = "beyond"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    """A budget for the mean KL (nats), what became of it, and the sentence that says so."""

    budget: float
    outcome: Outcome
    reason: str

    @property
    def exit_code(self) -> ExitCode:
        """1 beyond the budget, 3 if nothing can be said, else 0."""
        codes = {Outcome.BEYOND: ExitCode.DRIFT, Outcome.UNMEASURED: ExitCode.UNMEASURED}
        return codes.get(self.outcome, ExitCode.FINE)


def judge_budget(mean: Figure, budget: float, needed: int) -> BudgetVerdict:
    """Hold a mean KL against ``budget`` (nats): beyond it only if the lower limit of its interval is.

    Without an interval there are too few sequences, fewer than ``needed``, and nothing is decided.
    """
    interval = mean.interval
    if interval is None or interval.low is None or interval.high is None:
        reason = f"{mean.n} sequences are too few to hold the mean KL against a budget, {needed} are needed"
        return BudgetVerdict(budget, Outcome.UNMEASURED, reason)
    limits = f"{interval.low:.3g}..{interval.high:.3g}"
    if interval.low > budget:
        return BudgetVerdict(
            budget, Outcome.BEYOND, f"the mean KL, {limits} nats, is beyond the budget of {budget:g}"
        )
    if interval.high > budget:
        return BudgetVerdict(
            budget,
            Outcome.UNDECIDED,
            f"the mean KL, {limits} nats, is not shown to be beyond the budget of {budget:g}, nor within it",
        )
    return BudgetVerdict(
        budget, Outcome.WITHIN, f"the mean KL, {limits} nats, is within the budget of {budget:g}"
    )
