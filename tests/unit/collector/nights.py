"""Nights of one endpoint that pass one after the other through the store, judged as the cycle judges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from collector.series import Judged, Watch, judge_series
from logprob_drift.alarms.night_detector import Rule
from ringtrue.records import Cause, Check, Finding, Observation, Party, Severity, State, Verdict
from ringtrue.store import Store
from ringtrue.verdict import conclude

FIRST = datetime(2026, 3, 1, 2, tzinfo=UTC)
FLOOR = 0.001
SD = 0.1  # of the logarithm of a night's KL
RULE = Rule(2 * 2 * 365.0)

LOGPROBS = Finding(
    "acme", Check.LOGPROBS, "c", Severity.INFO, Party.UNKNOWN, Cause.UNKNOWN, "within the floor", value=FLOOR
)
TOKENS = Finding(
    "acme",
    Check.TOKENS,
    "tokens.equal",
    Severity.INFO,
    Party.UNKNOWN,
    Cause.UNKNOWN,
    "the model's own",
    evidence={"counted": False},
)
FEW = replace(LOGPROBS, measured=False, message="too few prompts")
SILENT = replace(FEW, value=None, message="no answer")
WORSE = replace(LOGPROBS, severity=Severity.FAIL, cause=Cause.NUMERICS, message="int4")
OTHER_IDS = replace(TOKENS, severity=Severity.WARN, cause=Cause.PROMPT)


def of_part(check: Check, severity: Severity = Severity.INFO, *, measured: bool = True) -> Finding:
    """Return what the rule of one night says of a check that parts of the examination answer."""
    return Finding(
        "acme", check, f"{check}.c", severity, Party.PROVIDER, Cause.UNKNOWN, "as tonight", measured=measured
    )


@dataclass
class Nights:
    """Nights that pass one after the other; each is measured, judged, concluded and stored."""

    store: Store
    now: datetime = FIRST
    judged: list[Judged] = field(default_factory=list)
    verdicts: tuple[Verdict, ...] = ()
    runs: int = 0

    def pass_one(
        self,
        *values: float,
        endpoint: str = "acme",
        logprobs: Finding = LOGPROBS,
        tokens: Finding = TOKENS,
        parts: Mapping[str, tuple[float, int]] | None = None,
        others: tuple[Finding, ...] = (),
        basis: str = "b",
        n: int = 64,
        k: int = 20,
        after: timedelta = timedelta(days=1),
        judge: bool = True,
    ) -> Verdict:
        """Measure ``values``, the mean KL at 32, 128, ... tokens, and return the verdict on logprobs.

        ``parts`` are the numbers of parts by metric, each with its sample size,
        ``others`` what the rule of one night found of their checks. A night
        whose past is known to be quiet need not be judged.
        """
        self.runs += 1
        run = f"r{self.runs:04}"
        self.store.start_run(run, basis)
        curve = [
            Observation(endpoint, "p", metric, number, unit, n, self.now, run, context_length=length)
            for value, length in zip(values, (32, 128), strict=False)
            for metric, number, unit in (("kl_mean", value, "nats"), ("k_min", float(k), "tokens"))
        ]
        beside = [
            Observation(endpoint, "p", metric, value, "u", count, self.now, run)
            for metric, (value, count) in (parts or {}).items()
        ]
        self.store.add_observations([*curve, *beside])
        found = [replace(finding, endpoint=endpoint) for finding in (logprobs, tokens, *others)]
        judged = Judged(tuple(found))
        if judge:
            judged = judge_series(self.store, endpoint, found, Watch(basis, RULE), run=run, at=self.now)
        previous = self.store.previous_verdicts()
        verdicts = conclude(endpoint, "m", judged.findings, previous=previous, run=run, at=self.now)
        self.store.conclude(run, judged.findings, verdicts, judged.alarms)
        self.judged.append(judged)
        self.now += after
        self.verdicts = verdicts
        return verdicts[0]

    def verdict(self, check: Check) -> Verdict:
        """Return the newest night's verdict on ``check``."""
        (verdict,) = (verdict for verdict in self.verdicts if verdict.check is check)
        return verdict

    def pass_many(self, values: np.ndarray, **options: object) -> list[Verdict]:
        return [self.pass_one(*np.atleast_1d(value), **options) for value in values]

    @property
    def state(self) -> Mapping[str, Mapping[str, float | None]]:
        """Return the state of each stream on the newest night."""
        return self.judged[-1].findings[0].evidence["series"]


def honest(count: int, seed: int = 1, shift: float = 0.0) -> np.ndarray:
    """Return nights whose KL is lognormal, ``shift`` SDs above the floor."""
    noise = np.random.default_rng(seed).standard_normal(count)
    return FLOOR * np.exp(SD * (noise + shift))


def states(verdicts: list[Verdict]) -> set[State]:
    return {verdict.verdict for verdict in verdicts}
