"""The arithmetic of the night-level detector: Bayes factors of candidate changes, from running sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logprob_drift.alarms.autocorrelation import lag_one, variance_of_mean
from logprob_drift.alarms.metric import Metric, Scale
from ringtrue.e_values import least_t2, log_t_factor

Values = NDArray[np.float64]
Indices = NDArray[np.int64]

LEAST_BASELINE = 8  # nights; with fewer, an SD is a guess
_POWER = 1.2816  # SDs; a shift this much above the limit is seen in 9 of 10 cases
_LARGEST = 700.0  # log evidence beyond which only its size is lost


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of many nights: alarm at ``threshold`` (`ringtrue.e_values.alarm_threshold`).

    Raises:
        ValueError: fewer than 8 baseline nights, or no window.
    """

    threshold: float
    baseline: int = 14  # nights before a change can be seen
    window: int = 30  # nights a candidate change may lie back
    g: float = 9.0  # prior variance of a shift, in variances of a night

    def __post_init__(self) -> None:
        if self.baseline < LEAST_BASELINE or self.window < 2 or not self.threshold > 1:
            raise ValueError(f"at least {LEAST_BASELINE} baseline nights, a window of 2, a threshold above 1")


class _Before(NamedTuple):
    """The nights before candidate changes, [streams, changes]; ``least`` is the least variance of a night."""

    n: Indices
    total: Values
    squares: Values
    mean: Values
    spread: Values
    least: Values | float
    rho: Values
    variance: Values


class Evidence:
    """Evidence over measured nights, packed to the left, [streams, nights]."""

    def __init__(self, x: Values, metric: Metric, rule: Rule) -> None:
        self._x, self._metric, self._rule = x, metric, rule
        centred = x - x[:, :1]  # sums of squares stay small beside a large level
        self._level = x[:, :1]
        nothing = np.zeros((x.shape[0], 1))
        self._sums = np.concatenate([nothing, np.cumsum(centred, axis=1)], axis=1)
        self._squares = np.concatenate([nothing, np.cumsum(centred**2, axis=1)], axis=1)
        self._rho = lag_one(centred)
        self.evidence, self.guarded = np.zeros(x.shape), np.zeros(x.shape)
        self.lag = np.zeros(x.shape, dtype=np.int64)
        self._add_candidates(centred)

    def _add_candidates(self, x: Values) -> None:
        rule, nights = self._rule, x.shape[1]
        best = np.full(x.shape, -np.inf)
        highest, lowest = np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
        for lag in range(1, min(rule.window, nights - rule.baseline) + 1):
            # The change began lag - 1 nights before the present one; it needs its baseline.
            highest[:, lag - 1 :] = np.maximum(highest[:, lag - 1 :], x[:, : nights - lag + 1])
            lowest[:, lag - 1 :] = np.minimum(lowest[:, lag - 1 :], x[:, : nights - lag + 1])
            now = np.s_[:, rule.baseline + lag - 1 :]
            before = self._before(np.arange(rule.baseline, nights - lag + 1))
            total = self._sums[:, rule.baseline + lag :] - before.total
            squares = self._squares[:, rule.baseline + lag :] - before.squares
            whole = self._log_factor(before, total, squares, lag)
            self.evidence[now] += np.exp(whole)
            if lag > 1:
                up, down = highest[now], lowest[now]
                extreme = np.where(up - before.mean > before.mean - down, up, down)
                rest = self._log_factor(before, total - extreme, squares - extreme**2, lag - 1)
                self.guarded[now] += np.exp(rest)
            better = whole > best[now]
            best[now] = np.where(better, whole, best[now])
            self.lag[now] = np.where(better, lag, self.lag[now])

    def _before(self, n: Indices) -> _Before:
        """Return what is known of the first ``n`` nights, one column for each."""
        total, squares = self._sums[:, n], self._squares[:, n]
        mean = total / n
        least = np.exp(-(mean + self._level)) if self._metric.scale is Scale.LOG else self._metric.resolution
        spread = np.maximum(squares - n * mean**2, 0.0)
        rho = self._rho[:, n - 1]
        variance = variance_of_mean(rho, n.astype(np.float64))
        return _Before(n, total, squares, mean, spread, least**2, rho, variance)

    def _log_factor(self, before: _Before, total: Values, squares: Values, n: int) -> Values:
        mean = total / n
        nu = np.asarray(before.n + n - 2, dtype=np.float64)
        spread = before.spread + np.maximum(squares - n * mean**2, 0.0)
        variance = np.maximum(spread / nu, before.least)
        n_e = 1 / (before.variance + variance_of_mean(before.rho, n))
        factor = log_t_factor(n_e * (mean - before.mean) ** 2 / variance, n_e, nu, self._rule.g)
        return np.asarray(np.minimum(factor, _LARGEST))

    def detectable(self) -> tuple[Values, Values]:
        """Return the smallest lasting shift in SDs and in the metric's unit."""
        rule, nights = self._rule, self._x.shape[1]
        in_sd, in_unit = np.full(self._x.shape, np.inf), np.full(self._x.shape, np.inf)
        seen = np.arange(rule.baseline + 2, nights + 1)  # a guarded change needs two nights
        if not seen.size:
            return in_sd, in_unit
        after = np.minimum(rule.window, seen - rule.baseline)
        before = self._before(seen - after)
        variance = before.variance + variance_of_mean(before.rho, after - 1.0)
        t2 = least_t2(1 / variance, np.asarray(seen - 3, dtype=np.float64), rule.g, rule.threshold)
        shift = (np.sqrt(t2) + _POWER) * np.sqrt(variance)
        step = shift * np.sqrt(np.maximum(before.spread / (before.n - 1), before.least))
        if self._metric.scale is Scale.LOG:
            level = self._metric.resolution * np.exp(before.mean + self._level)
            step = level * np.expm1(np.minimum(step, _LARGEST))
        in_sd[:, seen - 1], in_unit[:, seen - 1] = shift, step
        return in_sd, in_unit
