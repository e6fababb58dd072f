"""Numbers of one examination, as observations: each answer's own, and one of each kind a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from evals.answers import Answered
from evals.availability import first_failure
from logprob_drift.context_curve import Curve, Row
from logprob_drift.divergence import Divergence
from ringtrue.records import Exchange, Observation

PROBE = "context_curve"


@dataclass(frozen=True, slots=True)
class Measured:
    """One comparable prompt: its divergence, and its row with the floor beside it."""

    answer: Answered
    divergence: Divergence
    row: Row


@dataclass(frozen=True, slots=True)
class Scribe:
    """Writes observations of one endpoint, run and probe."""

    endpoint: str
    run: str
    probe: str = PROBE

    def of_exchange(self, exchange: Exchange, bucket: int | None) -> list[Observation]:
        """Return whether the first attempt was answered (1 or 0), attempts, and time to first byte."""
        session = exchange.request.session
        answered = 0.0 if first_failure(exchange) is not None else 1.0
        numbers = [
            ("answered", answered, "share"),
            ("attempts", float(len(exchange.attempts) or 1), "attempts"),
        ]
        times = exchange.timings
        sent = exchange.attempts[-1].sent if exchange.attempts else times.sent
        if exchange.error is None and times.first_byte is not None and sent is not None:
            numbers.append(("ttft_any", times.first_byte - sent, "s"))
        return [
            self.one(metric, value, unit, 1, exchange.at, bucket, session) for metric, value, unit in numbers
        ]

    def of_prompt(self, answer: Answered, divergence: Divergence) -> list[Observation]:
        """Return D and the unseen mass of one prompt."""
        exchange = answer.exchange
        return [
            self.one(metric, value, unit, 1, exchange.at, answer.prompt.bucket, exchange.request.session)
            for metric, value, unit in (
                ("kl", divergence.kl, "nats"),
                ("unseen", divergence.unseen, "probability"),
            )
        ]

    def of_curve(self, measured: Sequence[Measured], curve: Curve, at: datetime) -> list[Observation]:
        """Return each prompt's F, and one number of each kind per bucket that has prompts."""
        numbers = [
            self.one(
                "kl_floor", one.row.f, "nats", 1, one.answer.exchange.at, one.row.bucket, one.row.session
            )
            for one in measured
        ]
        for bucket in curve.buckets:
            some = [one for one in measured if one.row.bucket == bucket.length]
            if some:
                numbers += self._bucket(some, bucket.length, at)
        if curve.slope is not None:
            numbers.append(self.one("kl_slope", curve.slope, "log nats per log token", len(measured), at))
        return numbers

    def _bucket(self, some: Sequence[Measured], length: int, at: datetime) -> list[Observation]:
        divergences = [one.divergence for one in some]
        deltas = np.array([d.delta_p for d in divergences if d.delta_p is not None])
        means: dict[tuple[str, str], np.floating | int] = {
            ("kl_mean", "nats"): np.mean([d.kl for d in divergences]),
            ("kl_least", "nats"): np.min([d.kl for d in divergences]),
            ("kl_floor_mean", "nats"): np.mean([one.row.f for one in some]),
            ("kl_reverse_low_mean", "nats"): np.mean([d.reverse_low for d in divergences]),
            ("kl_reverse_high_mean", "nats"): np.mean([d.reverse_high for d in divergences]),
            ("js_mean", "nats"): np.mean([d.js for d in divergences]),
            ("tv_mean", "probability"): np.mean([d.tv for d in divergences]),
            ("top1_agreement", "share"): np.mean([d.top1 for d in divergences]),
            ("unseen_mean", "probability"): np.mean([d.unseen for d in divergences]),
            ("k_min", "tokens"): min(d.k for d in divergences),
        }
        numbers = [
            self.one(metric, float(value), unit, len(some), at, length)
            for (metric, unit), value in means.items()
        ]
        if deltas.size:
            rms = float(np.sqrt((deltas**2).mean()))
            for metric, value in (("delta_p_mean", float(deltas.mean())), ("delta_p_rms", rms)):
                numbers.append(self.one(metric, value, "probability", deltas.size, at, length))
        return numbers

    def one(
        self,
        metric: str,
        value: float,
        unit: str,
        n: int,
        at: datetime,
        bucket: int | None = None,
        session: str | None = None,
    ) -> Observation:
        """Return one observation."""
        return Observation(
            self.endpoint,
            self.probe,
            metric,
            value,
            unit,
            n,
            at,
            self.run,
            context_length=bucket,
            session=session,
        )
