"""The statement about sampled tokens: whether temperature and the whole distribution are honoured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from logprob_drift.findings import Basis
from logprob_drift.token_only.drawn_tokens import ALARM, EXCLUDED, LEAST_CUT, DrawnNight, SeedPairs
from logprob_drift.token_only.sampling_alternatives import Alternative
from ringtrue.records import Cause, Check, Finding, Interval, Party, Severity, State


@dataclass(frozen=True, slots=True)
class DrawnFrom:
    """What the tokens were held against.

    With ``own`` the endpoint's own logprobs beside each token, else the
    reference's distribution; ``alike`` says that the two were found alike
    on the same token IDs.
    """

    own: bool
    alike: bool


def drawn_finding(
    endpoint: str,
    night: DrawnNight,
    source: DrawnFrom,
    basis: Basis,
    *,
    pairs: SeedPairs | None = None,
    alarm: float = ALARM,
) -> Finding:
    """Return the finding for ``sampling``: CHANGED, OK, or UNKNOWN with the number of draws missing.

    The cause of a change is ``sampling``. Where neither the endpoint's own
    logprobs nor the context curve vouch for its distribution, other numerics
    or another model could look alike and are alternatives.
    """
    changed = night.state is State.CHANGED
    return Finding(
        endpoint=endpoint,
        check=Check.SAMPLING,
        code=f"sampling.{_CODES[night.state]}",
        severity=Severity.WARN if changed else Severity.INFO,
        party=Party.PROVIDER if changed else Party.UNKNOWN,
        cause=Cause.SAMPLING if changed else Cause.UNKNOWN,
        message=_words(night, source, basis, pairs, alarm),
        alternatives=_alternatives(source, basis) if changed else (),
        effect=None if night.temperature is None else night.temperature - 1,
        unit="times",
        interval=night.interval,
        n=night.n,
        detectable_effect=night.detectable,
        metric="temperature",
        value=night.temperature,
        measured=night.state is not State.UNKNOWN,
        evidence={
            "log_e": night.log_e,
            "best": night.best.name,
            "null": "endpoint" if source.own else "reference",
            "not_excluded": [one.name for one in night.open],
            "seed_pairs": pairs.n if pairs else 0,
            "seed_pairs_equal": pairs.equal if pairs else None,
            "seed_honoured": pairs.honoured if pairs else None,
        },
    )


_CODES = {State.CHANGED: "drawn_otherwise", State.OK: "drawn_as_asked", State.UNKNOWN: "unmeasured"}


def _alternatives(source: DrawnFrom, basis: Basis) -> tuple[Cause, ...]:
    if source.own:
        return ()
    prompt = (Cause.PROMPT,) if basis.counted else ()
    return prompt if source.alike else (*prompt, Cause.NUMERICS, Cause.IDENTITY)


def _words(night: DrawnNight, source: DrawnFrom, basis: Basis, pairs: SeedPairs | None, alarm: float) -> str:
    against = "the logprobs beside them" if source.own else "the reference's distribution"
    drawn = f"{night.n:,} sampled tokens held against {against}"
    if night.state is State.CHANGED:
        words = f"{night.best.words}: e-value {_power(night.log_e)} from {drawn}, alarm at {alarm:,.0f}"
        if not source.own and not source.alike:
            words += "; tokens alone can't tell this from other numerics or another model"
    elif night.state is State.OK:
        words = (
            f"{drawn} are drawn as asked: a temperature off by 10 % or more, greedy choice, a dropped first "
            f"token, repeated answers and cuts of more than {LEAST_CUT:.0%} are excluded at {EXCLUDED:.0%}"
        )
    elif night.n:
        words = f"{drawn} do not tell yet: {_open(night.open)} not excluded"
        words += f"; about {night.more:,} more would decide" if night.more else ""
    else:
        words = "no sampled token could be read"
    words += _temperature(night.temperature, night.interval)
    if basis.withheld:
        words += f"; {basis.withheld} answers withheld, their token IDs differ"
    if lost := sum(basis.unusable.values()):
        words += f"; {lost} answers left out, which could not be read"
    return words + (f"; the seed is {_SEED[pairs.honoured]}" if pairs is not None else "")


_SEED = {True: "honoured", False: "not honoured", None: "perhaps honoured: its pairs don't tell"}


def _power(log_e: float) -> str:
    return f"10^{log_e / math.log(10):.1f}"


def _open(alternatives: tuple[Alternative, ...]) -> str:
    named = [one.words for one in alternatives[:2]]
    more = f" and {len(alternatives) - 2} more are" if len(alternatives) > 2 else ""
    return "; ".join(f'"{words}"' for words in named) + (more or (" are" if len(named) > 1 else " is"))


def _temperature(factor: float | None, interval: Interval | None) -> str:
    if factor is None or interval is None:
        return ""
    if interval.low is None and interval.high is None:
        return ""
    if interval.low is None:
        return f"; temperature at most {interval.high:.2f} times what was asked"
    if interval.high is None:
        return f"; temperature at least {interval.low:.2f} times what was asked"
    return f"; temperature {factor:.2f} times what was asked ({interval.low:.2f} to {interval.high:.2f})"
