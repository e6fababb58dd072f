"""``ringtrue tokens infer``: what counts of prompt tokens are consistent with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from evals.tokens.counting import Counted
from evals.tokens.library import Library, dated, hypothesis
from evals.tokens.named_format import NamedFormat
from ringtrue.records import Cause, Check, Finding, Party, Severity, Verdict
from ringtrue.verdict import conclude
from tokenizer_checks.counts.asks import Ask, template_asks, tokenizer_asks
from tokenizer_checks.counts.consistency import (
    Consistency,
    Undetectable,
    consistent,
    indistinguishable,
    undetectable,
)
from tokenizer_checks.templates.model import near_days

_MARKERS = 3


@dataclass(frozen=True, slots=True)
class Inferred:
    """What the counts of one endpoint can be, and what they could not have told.

    ``promised`` is the hypothesis that nothing is wrong. ``alike`` are groups
    of hypotheses that these requests do not tell apart, of those that fit.
    """

    endpoint: str
    model: str
    promised: str
    hidden: int | None
    counted: Counted
    consistency: Consistency
    undetectable: Undetectable
    alike: tuple[tuple[str, ...], ...]
    hypotheses: int

    @property
    def finding(self) -> Finding:
        """What is to be said of the endpoint."""
        return _finding(self)

    def verdicts(self, at: datetime) -> tuple[Verdict, ...]:
        """Return the verdict, as of ``at``."""
        return conclude(self.endpoint, self.model, [self.finding], previous={}, run="tokens infer", at=at)


def asks_for(formats: Sequence[NamedFormat]) -> tuple[Ask, ...]:
    """Return both vectors of requests, with control tokens of the first model as plain text in some."""
    named = formats[0].model.special_tokens
    markers = tuple(dict.fromkeys(text for text in named.values() if text))[:_MARKERS]
    return (*tokenizer_asks(), *template_asks(markers))


def infer(
    endpoint: str,
    model: str,
    counted: Counted,
    formats: Sequence[NamedFormat],
    *,
    now: datetime,
    hidden: int | None = None,
) -> Inferred:
    """Return what the counts are consistent with; the first of ``formats`` is what is promised.

    ``hidden`` is how many tokens the server is known to add to every prompt,
    ``None`` where that is not known. Where a template writes the date, the day
    that fits is looked for among today and its neighbours.

    Raises:
        ModelError: a model has no chat template, or refuses every request.
    """
    promised = hypothesis(formats[0].name)
    asks = [ask for ask in asks_for(formats) if ask.name in counted.counts]
    tried = [
        (consistent(counted.counts, held, hidden=hidden), held)
        for held in dated(formats, asks, near_days(now))
    ]
    told, held = max(tried, key=lambda one: (one[0].own(promised) is True, len(one[0].fits)))
    fits = {fit.name for fit in told.fits}
    return Inferred(
        endpoint,
        model,
        promised,
        hidden,
        counted,
        told,
        undetectable(held, promised),
        _alike(held, fits),
        len(held),
    )


def _alike(held: Library, fits: set[str]) -> tuple[tuple[str, ...], ...]:
    groups = indistinguishable({name: counts for name, counts in held.items() if name in fits})
    return tuple(tuple(sorted(group)) for group in groups)


def _finding(found: Inferred) -> Finding:
    own = found.consistency.own(found.promised)
    evidence: Mapping[str, object] = {
        "fits": [fit.name for fit in found.consistency.fits][:64],
        "hidden": next((fit.hidden for fit in found.consistency.fits if fit.name == found.promised), None),
        "unmeasured": len(found.counted.unmeasured),
    }
    return Finding(
        endpoint=found.endpoint,
        check=Check.TOKENS,
        code="tokens.counts",
        severity=Severity.WARN if own is False else Severity.INFO,
        party=Party.PROVIDER if own is False else Party.UNKNOWN,
        cause=Cause.PROMPT if own is False else Cause.UNKNOWN,
        message=_message(found, own=own),
        alternatives=(Cause.IDENTITY, Cause.CONTEXT) if own is False else (),
        metric="requests_counted",
        value=float(found.consistency.requests),
        unit="requests",
        n=found.consistency.requests,
        measured=own is not None,
        evidence=evidence,
    )


def _message(found: Inferred, *, own: bool | None) -> str:
    told = found.consistency
    if own is None:
        return told.sentence
    if not own:
        return f"the counts are not those of {found.promised}: {told.sentence}"
    mine = next(fit for fit in told.fits if fit.name == found.promised)
    others = len(told.fits) - 1
    beside = f", and with {others:,} others that they can't tell from it" if others else ""
    return f"{replace(told, fits=(mine,)).sentence}{beside}"
