"""The answers of one night to a fixed set of questions: their numbers, and what no serviceable model does.

(docs/methods.md, "Answers".) How long answers usually are is the model's own
affair, and how often they loop too: that is judged over nights alone. Three
kinds of answers need no past to be wrong (`LIMITS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from logprob_drift.token_only.lengths import Prompts, cap_hits, length_number, reasoning_number
from logprob_drift.token_only.rates import Count, rate_of
from ringtrue.records import Interval
from ringtrue.stats import Values, mean_interval

Flags = NDArray[np.bool_]

LEVEL = 0.99
LEAST_SHARE = 0.9  # of the questions; a night with fewer lengths is not comparable


class Fault(StrEnum):
    """A kind of answer that is wrong whatever the model."""

    FLOODED = "flooded"  # one sign for ever
    FOREIGN = "foreign"  # letters of another script
    EMPTY = "empty"


LIMITS: Mapping[Fault, float] = MappingProxyType(
    {Fault.FLOODED: 0.02, Fault.FOREIGN: 0.02, Fault.EMPTY: 0.05}
)
"""The share of answers that is tolerated, by fault."""


@dataclass(frozen=True, slots=True)
class Answers:
    """One night's answers; every column has shape [answers].

    ``question`` is the index of the question. ``length`` is the visible
    answer's and ``reasoning`` the reasoning's, in tokens, NaN where unknown;
    an answer without text has the length 0. ``finish_reasons`` are as sent.
    ``silent`` answers were cut at the cap before they showed any text, which
    is no ``empty`` answer. ``lost`` ones are empty though the server counted
    tokens for them, or come as something else than text.
    """

    question: Prompts
    length: Values
    reasoning: Values
    finish_reasons: tuple[str | None, ...]
    silent: Flags
    empty: Flags
    lost: Flags
    looping: Flags
    flooded: Flags
    foreign: Flags

    @property
    def n(self) -> int:
        """The number of answers."""
        return len(self.finish_reasons)


@dataclass(frozen=True, slots=True)
class Broken:
    """A fault of `LIMITS` in tonight's answers.

    ``rate`` and its ``interval`` (Wilson, `LEVEL`) are shares of the answers;
    ``beyond`` says that the lower limit is above ``limit``. ``detectable`` is
    the smallest share that would have been, ``None`` for so few answers that
    none would.
    """

    fault: Fault
    count: Count
    rate: float
    interval: Interval
    limit: float
    detectable: float | None

    @property
    def beyond(self) -> bool:
        """Whether the share is above the limit with 99.5 % confidence."""
        return self.interval.low is not None and self.interval.low > self.limit


@dataclass(frozen=True, slots=True)
class AnswerNight:
    """A night's numbers; ``None`` is a number that could not be measured.

    ``log_length`` is the mean log length of the visible answers, as if every
    question had been answered, with its ``interval`` (98 %, over questions)
    from ``lengths`` answers. ``reasoning_share`` is the mean over ``reasoned``
    answers. ``needed`` lengths make the night comparable with others.
    ``broken`` are the faults beyond their limits, the worst first.
    """

    n: int
    log_length: float | None
    interval: Interval | None
    lengths: int
    needed: int
    reasoning_share: float | None
    reasoned: int
    capped: Count
    empty: Count
    looping: Count
    flooded: Count
    foreign: Count
    silent: int
    lost: int
    broken: tuple[Broken, ...]

    @property
    def comparable(self) -> bool:
        """Whether enough questions have a length for a series of nights."""
        return self.lengths >= self.needed


def judge_answers(answers: Answers, usual: Values, rng: np.random.Generator) -> AnswerNight:
    """Return the numbers of one night.

    ``usual`` [questions] is the log length that each question's answer takes
    about. It only has to be the same every night: where a question lacks an
    answer, the mean of the others is moved by what is usual for those, and
    what is wrong with it cancels between nights that answered the same.
    """
    some = answers.length > 0  # false for NaN
    number = length_number(answers.length, answers.question, usual)
    centre = float(usual.mean())
    beyond = np.log(answers.length[some]) - usual[answers.question[some]]
    shown = answers.length + answers.reasoning > 0
    counts = {fault: _count(getattr(answers, fault.value)) for fault in Fault}
    found = [broken for fault, count in counts.items() if (broken := _broken(fault, count)) is not None]
    return AnswerNight(
        n=answers.n,
        log_length=None if number is None else number + centre,
        interval=mean_interval(beyond + centre, rng),
        lengths=int(some.sum()),
        needed=int(np.ceil(LEAST_SHARE * usual.size)),
        reasoning_share=reasoning_number(answers.reasoning, answers.length),
        reasoned=int(shown.sum()),
        capped=cap_hits(answers.finish_reasons),
        empty=counts[Fault.EMPTY],
        looping=_count(answers.looping),
        flooded=counts[Fault.FLOODED],
        foreign=counts[Fault.FOREIGN],
        silent=int(answers.silent.sum()),
        lost=int(answers.lost.sum()),
        broken=tuple(sorted((one for one in found if one.beyond), key=lambda one: one.limit - one.rate)),
    )


def detectable_share(n: int, limit: float) -> float | None:
    """Return the smallest share of ``n`` answers that lies beyond ``limit``, ``None`` where none does."""
    for events in range(1, n + 1):
        interval = rate_of(Count(events, n), LEVEL).interval
        if interval is not None and interval.low is not None and interval.low > limit:
            return events / n
    return None


def _count(flags: Flags) -> Count:
    return Count(int(flags.sum()), int(flags.size))


def _broken(fault: Fault, count: Count) -> Broken | None:
    rate = rate_of(count, LEVEL)
    if rate.value is None or rate.interval is None:
        return None
    limit = LIMITS[fault]
    return Broken(fault, count, rate.value, rate.interval, limit, detectable_share(count.n, limit))
