"""One stream: a number's nights, those that can be compared with tonight's, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from collector.streams.watched import OWN_PAST, Kind, Watched
from logprob_drift.alarms.metric import Scale
from ringtrue.alarm import Alarm
from ringtrue.nightly_numbers import NightNumbers

Values = NDArray[np.float64]
Indices = NDArray[np.int64]

LEAST_SHARE = 0.9  # of the usual prompts: a night with fewer, or as many more, asked another set
_USUAL_NIGHTS = 14  # whose median is usual
_LARGEST = 1e100  # what lies beyond is no measurement


@dataclass(frozen=True, slots=True)
class Stream:
    """A number's nights in order, tonight last: ``values`` [nights], NaN where not measured.

    Nights of a returned alarm are left out, those before an accepted change
    lie before the index ``accepted``. ``raw`` holds them all. ``n`` [nights]
    is the sample size. ``restarted`` says that a change was accepted.
    ``tonight`` says why tonight's number can't be compared, where it can't.
    """

    name: str
    watched: Watched
    length: int | None
    starts: tuple[datetime, ...]
    raw: Values
    values: Values
    n: Values
    accepted: int
    restarted: bool
    tonight: str | None = None

    @property
    def kind(self) -> Kind:
        """How it is judged."""
        kind = self.watched.kind
        return OWN_PAST.get(kind, kind) if self.restarted else kind

    @property
    def measured(self) -> Indices:
        """The indices of its measured nights since the last accepted change."""
        found: Indices = np.flatnonzero(~np.isnan(self.values)).astype(np.int64)
        return found[found >= self.accepted]

    def since(self, at: datetime) -> Indices:
        """Return the indices of all nights measured from ``at`` on, also those that are left out."""
        found: Indices = np.flatnonzero(~np.isnan(self.raw)).astype(np.int64)
        return found[found >= _index(self.starts, at)]

    def after(self, at: datetime) -> Indices:
        """Return the indices of all nights measured after the one that began at ``at``."""
        found: Indices = np.flatnonzero(~np.isnan(self.raw)).astype(np.int64)
        return found[found > _index(self.starts, at)]

    def events(self, values: Values) -> Values:
        """Return the counts behind shares of shape [nights], 0 where not measured."""
        return np.where(np.isnan(values), 0.0, np.round(np.nan_to_num(values) * self.n))

    def trials(self, values: Values) -> Values:
        """Return the sample sizes behind ``values`` of shape [nights], 0 where not measured."""
        return np.where(np.isnan(values), 0.0, self.n)


def streams_of(
    nights: Sequence[NightNumbers], rows: Sequence[Watched], alarms: Sequence[Alarm]
) -> list[Stream]:
    """Return the streams that have a number on the last night."""
    return [_stream(nights, row, length, alarms) for row in rows for length in _lengths(nights[-1], row)]


def _lengths(night: NightNumbers, row: Watched) -> list[int | None]:
    if not row.bucketed:
        return [None] if (row.name, None) in night.numbers else []
    lengths = (length for name, length in night.numbers if name == row.name and length is not None)
    return [*sorted(lengths)]


def _stream(
    nights: Sequence[NightNumbers], row: Watched, length: int | None, alarms: Sequence[Alarm]
) -> Stream:
    name = row.name if length is None else f"{row.name}@{length}"
    mine = [alarm for alarm in alarms if alarm.stream == name]
    starts = tuple(night.started for night in nights)
    cells = [night.numbers.get((row.name, length), (np.nan, 0)) for night in nights]
    raw = np.array([value if abs(value) <= _LARGEST else np.nan for value, _ in cells], dtype=np.float64)
    n = np.array([count for _, count in cells], dtype=np.float64)
    raw[n <= 0] = np.nan
    tonight = None
    if row.fixed is not None:
        fixed = [night.numbers.get((row.fixed, length), (np.nan, 0))[0] for night in nights]
        raw[np.array(fixed) != fixed[-1]] = np.nan
    if row.kind is Kind.NUMBER:
        tonight = _leave_out_other_sets(raw, n)
    elif row.kind is not Kind.LOG_E:
        raw[(raw < 0) | (raw > 1)] = np.nan  # no share
    logged = row.metric.scale is Scale.LOG
    values = np.maximum(raw, 0.0) if logged else raw  # a rounded sum may lie below 0
    accepted = max((_index(starts, a.since) for a in mine if a.by is not None), default=0)
    return Stream(
        name=name,
        watched=row,
        length=length,
        starts=starts,
        raw=values,
        values=_without(values, starts, mine),
        n=n,
        accepted=accepted,
        restarted=any(alarm.by is not None for alarm in mine),
        tonight=tonight or ("no usable number tonight" if np.isnan(values[-1]) else None),
    )


def _leave_out_other_sets(raw: Values, n: Values) -> str | None:
    """Drop nights with far fewer or more prompts than usual, and say so where tonight is one."""
    measured = np.flatnonzero(~np.isnan(raw))
    if not measured.size:
        return None
    usual = float(np.median(n[measured[-_USUAL_NIGHTS:]]))
    raw[(n < LEAST_SHARE * usual) | (n > usual / LEAST_SHARE)] = np.nan
    if measured[-1] == raw.size - 1 and np.isnan(raw[-1]):
        return f"{n[-1]:.0f} were measured tonight, where {usual:.0f} are usual"
    return None


def _without(raw: Values, starts: Sequence[datetime], alarms: Sequence[Alarm]) -> Values:
    values = raw.copy()
    for alarm in alarms:
        if alarm.until is not None:
            values[_index(starts, alarm.since) : _index(starts, alarm.until)] = np.nan
    return values


def _index(starts: Sequence[datetime], at: datetime) -> int:
    """Return how many nights started before ``at``."""
    return sum(start < at for start in starts)
