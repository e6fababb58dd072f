"""The table of causes: from what was seen to the layer to blame.

The rows are tried from top to bottom, as in docs/methods.md, "Causes". A
symptom that was not looked for is ``None``; it can't decide a row, and a row
that only fails for want of it stays possible and becomes an alternative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ringtrue.records import Cause


class Ids(StrEnum):
    """How the token IDs that the server used compare with the expected ones."""

    EQUAL = "equal"
    CUT_BEYOND = "cut_beyond"  # one contiguous cut, only beyond a length, right below it
    OTHER_VOCABULARY = "other_vocabulary"
    DIFFERENT = "different"


class Divergence(StrEnum):
    """Where the answer's distribution departs from the reference's on identical IDs."""

    NONE = "none"
    BEYOND = "beyond"  # only beyond a length
    EVERYWHERE = "everywhere"


@dataclass(frozen=True, slots=True)
class Symptoms:
    """What was seen; ``None`` where nobody looked or nothing could be told."""

    ids: Ids | None = None
    divergence: Divergence | None = None
    sessions_alike: bool | None = None
    greedy_departs: bool | None = None
    samples_differ: bool | None = None
    other_model_fits: bool | None = None
    parsed_wrong: bool | None = None
    slow: bool | None = None
    callers_own: bool | None = None


# A row answers True (this is it), False (excluded) or None (not excluded, not shown).
_Row = Callable[[Symptoms], bool | None]


def _all(*parts: bool | None) -> bool | None:
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def _ids(s: Symptoms, *wanted: Ids) -> bool | None:
    return None if s.ids is None else s.ids in wanted


def _diverges(s: Symptoms, *wanted: Divergence) -> bool | None:
    return None if s.divergence is None else s.divergence in wanted


def _not(part: bool | None) -> bool | None:
    return None if part is None else not part


_TABLE: tuple[tuple[Cause, _Row], ...] = (
    (Cause.CONTEXT, lambda s: _ids(s, Ids.CUT_BEYOND)),
    (Cause.IDENTITY, lambda s: _all(_ids(s, Ids.OTHER_VOCABULARY), s.greedy_departs)),
    (Cause.PROMPT, lambda s: _ids(s, Ids.OTHER_VOCABULARY, Ids.DIFFERENT)),
    (
        Cause.MIXTURE,
        lambda s: _all(
            _ids(s, Ids.EQUAL),
            _diverges(s, Divergence.EVERYWHERE, Divergence.BEYOND),
            _not(s.sessions_alike),
        ),
    ),
    (Cause.CONTEXT, lambda s: _all(_ids(s, Ids.EQUAL), _diverges(s, Divergence.BEYOND))),
    (Cause.SAMPLING, lambda s: _all(_diverges(s, Divergence.NONE), s.samples_differ)),
    (
        Cause.IDENTITY,
        lambda s: _all(_ids(s, Ids.EQUAL), _diverges(s, Divergence.EVERYWHERE), s.other_model_fits),
    ),
    (Cause.NUMERICS, lambda s: _all(_ids(s, Ids.EQUAL), _diverges(s, Divergence.EVERYWHERE))),
    (Cause.PARSING, lambda s: s.parsed_wrong),
    (Cause.PERFORMANCE, lambda s: s.slow),
    (Cause.CALLER, lambda s: s.callers_own),
)


def decide(symptoms: Symptoms) -> tuple[Cause, tuple[Cause, ...]]:
    """Return the cause and the alternatives that the symptoms do not exclude.

    Alternatives are the undecided rows above the one that decided: what is
    seen further down is another fault, not another explanation of this one.
    With no row decided the cause is ``unknown`` and every undecided row is an
    alternative.
    """
    undecided: list[Cause] = []
    for cause, row in _TABLE:
        answer = row(symptoms)
        if answer:
            return cause, tuple(c for c in dict.fromkeys(undecided) if c is not cause)
        if answer is None:
            undecided.append(cause)
    return Cause.UNKNOWN, tuple(dict.fromkeys(undecided))
