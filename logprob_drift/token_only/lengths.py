"""How long answers are, how often they hit the cap, how much of them is reasoning.

(docs/methods.md, "Lengths".) Numbers of one night, for the night detector (`night_detector.detect`) and for
counts (`rates.judge_rates`). Lengths are in tokens, reasoning and answer
apart: one may grow while the other shrinks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alarms.metric import Metric
from logprob_drift.token_only.rates import Count
from ringtrue.stats import Values

LOG_LENGTH = Metric(resolution=0.01, unit="log tokens")  # a change of 1 % is no change
REASONING_SHARE = Metric(resolution=0.005, unit="share of tokens")
CAPPED = frozenset({"length", "max_tokens"})  # finish reasons of an answer that the cap cut

Prompts = NDArray[np.int64]


def prompt_effects(tokens: Values, prompt: Prompts, prompts: int) -> Values:
    """Return each prompt's usual log length, [prompts], from answers of the baseline nights.

    ``tokens`` and ``prompt`` have shape [answers]. A prompt without an answer
    of at least one token gets the mean of the others, NaN if there is none.
    """
    some = tokens > 0
    count = np.bincount(prompt[some], minlength=prompts)
    total = np.bincount(prompt[some], weights=np.log(tokens[some]), minlength=prompts)
    effects: Values = np.divide(total, count, out=np.full(prompts, np.nan), where=count > 0)
    known = ~np.isnan(effects)
    if known.any():
        effects[~known] = effects[known].mean()
    return effects


def length_number(tokens: Values, prompt: Prompts | None = None, usual: Values | None = None) -> float | None:
    """Return the night's mean log length, less what its prompts usually take; ``None`` for no answer.

    ``tokens`` [answers], NaN where unknown. Answers of no token are left out:
    they are counted as empty (`empty_count`), since they have no log length.
    With ``prompt`` [answers] and ``usual`` [prompts] (`prompt_effects`), a
    night whose prompts differ, or that lost some, is still comparable: prompts
    differ in length far more than nights do. 0.18 is 20 % longer. Answers cut
    at a cap count with the cap, so a change beyond it shows in the cap-hits.

    Raises:
        ValueError: a negative length, or only one of ``prompt`` and ``usual``.
    """
    if (prompt is None) != (usual is None):
        raise ValueError("prompts need their usual lengths, and these need the prompts")
    if bool((tokens < 0).any()):
        raise ValueError("a length is negative")
    some = tokens > 0  # false for NaN
    if not some.any():
        return None
    logs: Values = np.log(tokens[some])
    if prompt is not None and usual is not None:
        logs = logs - usual[prompt[some]]
    return float(logs.mean())


def empty_count(tokens: Values) -> Count:
    """Return how many answers have no token, among those whose length (NaN: unknown) is known."""
    return Count(int((tokens == 0).sum()), int((~np.isnan(tokens)).sum()))


def cap_hits(finish_reasons: Sequence[str | None]) -> Count:
    """Return how many answers the cap cut; an answer without a finish reason is not counted at all."""
    stated = [reason for reason in finish_reasons if reason is not None]
    return Count(sum(reason in CAPPED for reason in stated), len(stated))


def reasoning_number(reasoning: Values, answer: Values) -> float | None:
    """Return the night's mean share of reasoning tokens, in [0, 1]; ``None`` where no answer has a token.

    Both [answers], NaN where unknown. Each answer weighs the same, so that
    one long answer can't move the night.

    Raises:
        ValueError: shapes differ, or a length is negative.
    """
    if reasoning.shape != answer.shape:
        raise ValueError(f"{reasoning.shape} reasoning lengths beside {answer.shape} answers")
    if bool((reasoning < 0).any() or (answer < 0).any()):
        raise ValueError("a length is negative")
    total = reasoning + answer
    some = total > 0
    return float((reasoning[some] / total[some]).mean()) if some.any() else None
