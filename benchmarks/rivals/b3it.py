"""Border inputs as published (arXiv 2602.11083): prompts whose first token is nearly a tie, asked every day.

20 inputs, ten answers each a day, against 100 reference answers each. The
statistic is the mean over inputs of the total variation between the two. A day
deviates when it is above 0.2 and more than 4 SD above a baseline of 14 days
that leaves out the last 4; three such days in a row are an alarm: 600 requests
at the least.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Counts = NDArray[np.int64]
INPUTS, ANSWERS, REFERENCE = 20, 10, 100
BASELINE, GAP, IN_A_ROW = 14, 4, 3
LEAST, SDS = 0.2, 4.0


def mean_total_variation(day: Counts, reference: Counts) -> float:
    """Return the mean over inputs of the total variation of two tables of counts, [inputs, tokens]."""
    shares = day / day.sum(axis=1, keepdims=True) - reference / reference.sum(axis=1, keepdims=True)
    return float(0.5 * np.abs(shares).sum(axis=1).mean())


def alarms(series: Values) -> NDArray[np.bool_]:
    """Return the days, shape [days], on which the third of three deviating days in a row is complete."""
    deviating = np.zeros(len(series), dtype=np.bool_)
    for now in range(BASELINE + GAP, len(series)):
        past = series[now - GAP - BASELINE : now - GAP]
        deviating[now] = series[now] > LEAST and series[now] > past.mean() + SDS * past.std(ddof=1)
    found = np.zeros(len(series), dtype=np.bool_)
    for now in range(IN_A_ROW - 1, len(series)):
        found[now] = bool(deviating[now - IN_A_ROW + 1 : now + 1].all())
    return found
