"""The table of watched numbers: which metric of a night is judged, how, and for which check.

A new stream is one row of `WATCHED`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from logprob_drift.alarms.metric import Metric, Scale
from logprob_drift.token_only.border_inputs import DISTANCE
from logprob_drift.token_only.greedy_margins import MARGIN
from logprob_drift.token_only.lengths import LOG_LENGTH, REASONING_SHARE
from ringtrue.nightly_numbers import Reading
from ringtrue.records import Cause, Check

# The reference agrees with itself to 2e-4 nats in a logprob, and a night's mean to half of that.
KL = Metric(1e-4, Scale.LOG, "nats")
# Evidence of single nights, where it is held against its own past: a tenth of a nat is none.
LOG_E = Metric(0.1, unit="nats")
SHARE = Metric(1e-3, unit="share")


class Kind(StrEnum):
    """How a stream is judged: against its own past, or against what the reference makes of a night."""

    NUMBER = "number"  # the night detector, against its past
    RATE = "rate"  # counts, against their past
    LOG_E = "log_e"  # the night's number is a log e-value
    VIOLATIONS = "violations"  # counts, against the rate that honest prompts stay below
    SESSIONS = "sessions"  # counts, against the rate of honest bad sessions


class Harm(StrEnum):
    """In which direction a lasting change does harm."""

    RISES = "rises"
    FALLS = "falls"


OWN_PAST: Mapping[Kind, Kind] = {Kind.LOG_E: Kind.NUMBER, Kind.SESSIONS: Kind.RATE}
"""How a stream with a stated null is judged once a change of it was accepted: the null no longer holds."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One row: ``noun`` names the number in a sentence, ``metric`` says how it is read.

    ``bucketed`` numbers have a stream for each length of prompts. ``fixed``
    names a number that has to be tonight's for a night to be comparable. A
    change in the direction that is ``harmful`` is WORSE, every other CHANGED.
    ``part`` is the setting of ``[parts]`` that asks for it, ``None`` for the
    context curve.
    """

    name: str
    kind: Kind
    check: Check
    noun: str
    metric: Metric
    cause: Cause
    alternatives: tuple[Cause, ...] = ()
    bucketed: bool = False
    fixed: str | None = None
    harmful: Harm | None = None
    part: str | None = None


_ELSEWHERE = (Cause.SAMPLING, Cause.NUMERICS, Cause.IDENTITY, Cause.PROMPT)
_OF_CALLS = (Cause.PARSING, *_ELSEWHERE)

WATCHED: tuple[Watched, ...] = (
    Watched(
        "kl_mean",
        Kind.NUMBER,
        Check.LOGPROBS,
        "KL",
        KL,
        Cause.NUMERICS,
        (Cause.MIXTURE, Cause.IDENTITY),
        bucketed=True,
        fixed="k_min",
    ),
    Watched(
        "bad_sessions",
        Kind.SESSIONS,
        Check.SESSIONS,
        "share of bad sessions",
        SHARE,
        Cause.MIXTURE,
        part="sessions",
    ),
    Watched(
        "greedy_margin",
        Kind.NUMBER,
        Check.SAMPLING,
        "mean greedy margin",
        MARGIN,
        Cause.NUMERICS,
        (Cause.IDENTITY, Cause.SAMPLING),
        part="greedy",
    ),
    Watched(
        "border_distance",
        Kind.NUMBER,
        Check.SAMPLING,
        "distance of first tokens at border prompts",
        DISTANCE,
        Cause.NUMERICS,
        (Cause.IDENTITY, Cause.SAMPLING),
        part="border",
    ),
    Watched(
        "sampling_log_e",
        Kind.LOG_E,
        Check.SAMPLING,
        "log e-value of the samples",
        LOG_E,
        Cause.SAMPLING,
        (Cause.NUMERICS, Cause.IDENTITY),
        part="sampled",
    ),
    Watched(
        "border_violations",
        Kind.VIOLATIONS,
        Check.IDENTITY,
        "share of border prompts answered outside the reference's support",
        SHARE,
        Cause.IDENTITY,
        (Cause.NUMERICS, Cause.SAMPLING),
        part="border",
    ),
    Watched(
        "answer_log_length",
        Kind.NUMBER,
        Check.OUTPUT,
        "mean log length of answers",
        LOG_LENGTH,
        Cause.UNKNOWN,
        _ELSEWHERE,
        part="answers",
    ),
    Watched(
        "reasoning_share",
        Kind.NUMBER,
        Check.OUTPUT,
        "share of reasoning",
        REASONING_SHARE,
        Cause.UNKNOWN,
        _ELSEWHERE,
        part="answers",
    ),
    Watched(
        "capped_answers",
        Kind.RATE,
        Check.OUTPUT,
        "share of capped answers",
        SHARE,
        Cause.UNKNOWN,
        _ELSEWHERE,
        part="answers",
    ),
    Watched(
        "empty_answers",
        Kind.RATE,
        Check.OUTPUT,
        "share of empty answers",
        SHARE,
        Cause.UNKNOWN,
        _ELSEWHERE,
        harmful=Harm.RISES,
        part="answers",
    ),
    Watched(
        "looping_answers",
        Kind.RATE,
        Check.OUTPUT,
        "share of looping answers",
        SHARE,
        Cause.UNKNOWN,
        _ELSEWHERE,
        harmful=Harm.RISES,
        part="answers",
    ),
    Watched(
        "flooded_answers",
        Kind.RATE,
        Check.OUTPUT,
        "share of answers that end in one sign for ever",
        SHARE,
        Cause.UNKNOWN,
        _ELSEWHERE,
        harmful=Harm.RISES,
        part="answers",
    ),
    Watched(
        "foreign_answers",
        Kind.RATE,
        Check.OUTPUT,
        "share of answers in letters of another script",
        SHARE,
        Cause.UNKNOWN,
        _ELSEWHERE,
        harmful=Harm.RISES,
        part="answers",
    ),
    Watched(
        "effective_rate",
        Kind.RATE,
        Check.TOOLCALLS,
        "share of answers with a sound call where one is due",
        SHARE,
        Cause.UNKNOWN,
        _OF_CALLS,
        harmful=Harm.FALLS,
        part="toolcalls",
    ),
    Watched(
        "call_validity",
        Kind.RATE,
        Check.TOOLCALLS,
        "share of sound calls",
        SHARE,
        Cause.UNKNOWN,
        _OF_CALLS,
        harmful=Harm.FALLS,
        part="toolcalls",
    ),
    Watched(
        "request_validity",
        Kind.RATE,
        Check.TOOLCALLS,
        "share of answers without a fault",
        SHARE,
        Cause.UNKNOWN,
        _OF_CALLS,
        harmful=Harm.FALLS,
        part="toolcalls",
    ),
    Watched(
        "leak_rate",
        Kind.RATE,
        Check.TOOLCALLS,
        "share of answers with leaked markers",
        SHARE,
        Cause.PARSING,
        _ELSEWHERE,
        harmful=Harm.RISES,
        part="toolcalls",
    ),
    Watched(
        "parity_breaks",  # counts: differences of shares are no number that is normal over nights
        Kind.RATE,
        Check.TOOLCALLS,
        "share of pairs of which the stream and the plain answer differ in class",
        SHARE,
        Cause.PARSING,
        _ELSEWHERE,
        harmful=Harm.RISES,
        part="toolcalls",
    ),
)

OF_THE_CURVE = Reading(("kl_mean", "k_min"), believed=True)
OF_THE_PARTS = Reading(tuple(row.name for row in WATCHED if not row.bucketed), believed=False)


def watched_of(stream: str) -> Watched | None:
    """Return the row that a stream's name belongs to, ``None`` where it is watched no longer."""
    metric = stream.partition("@")[0]
    return next((row for row in WATCHED if row.name == metric), None)


def streams_each(metrics: Collection[str], buckets: int) -> int:
    """Return how many streams one endpoint has when these metrics are asked, with so many buckets."""
    return sum(buckets if row.bucketed else 1 for row in WATCHED if row.name in metrics)
