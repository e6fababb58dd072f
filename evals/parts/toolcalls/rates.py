"""The metrics of one night of tool calls: as numbers for the series, in a sentence, as evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evals.parts.toolcalls.prompts import JudgedPrompt
from evals.parts.toolcalls.reference_calls import Called
from probes.toolcall_suite.prompt import Due
from toolcall_validator.metrics import STEPS, Metrics, success_of_steps
from toolcall_validator.tally import Tally

NOBODY: Mapping[str, Called] = {}


def metrics_of(judged: Sequence[JudgedPrompt], reference: Mapping[str, Called] = NOBODY) -> Metrics:
    """Return the metrics over all answers that were not cut; a call is due where the suite says so.

    ``reference`` says by request whether the reference calls. Without it there
    is no trigger F1. First attempts are the check ``wire``'s.
    """
    tally = Tally()
    for one in judged:
        called = reference.get(one.prompt.id)
        if called is not None:
            tally.add_rerun(one.prompt.id, first=called.exact, again=called.again)
        for form in one.answers:
            tally.add(
                one.prompt.id,
                one.judgements[form],
                due=one.prompt.due is Due.CALL,
                reference_called=None if called is None else called.exact,
            )
    return tally.metrics()


def numbers_of(metrics: Metrics) -> Iterator[tuple[str, float, int]]:
    """Yield metric, share and sample size of each number of the night; what has no trials is not among them.

    ``parity_breaks`` is the share of pairs that differ in class: a difference
    of shares is no number that a series can be judged by.
    """
    for metric, rate in metrics.rates.items():
        yield metric, rate.value, rate.trials
    if metrics.parity is not None:
        yield "stream_parity", metrics.parity.value, metrics.parity.pairs
        yield "parity_breaks", metrics.parity.broken / metrics.parity.pairs, metrics.parity.pairs


def sentence_of(metrics: Metrics) -> str:
    """Return the effective rate, what it leaves of an agent's steps, and the agreement with the reference.

    Empty where no call was due.
    """
    rate = metrics.rates.get("effective_rate")
    steps = success_of_steps(rate)
    if rate is None or steps is None:
        return ""
    value, (low, high) = steps
    bounds = rate.interval
    return (
        f"effective rate {rate.value:.2f} [{bounds.low or 0.0:.2f}, {bounds.high or 0.0:.2f}] over "
        f"{rate.prompts} requests that want a call, so that {STEPS} steps in a row succeed at a rate of "
        f"{value:.2g} [{low:.2g}, {high:.2g}]{_trigger(metrics)}"
    )


def _trigger(metrics: Metrics) -> str:
    if metrics.trigger is None:
        return ""
    rerun = f", its own rerun at {metrics.rerun.f1:.2f}" if metrics.rerun is not None else ""
    return f"; calls where the reference calls at an F1 of {metrics.trigger.f1:.2f}{rerun}"
