"""When streams alarmed: what every detector over nights says of its alarms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class AlarmNights:
    """Whether the alarm stands, and the night on which the likeliest change begins: [streams, nights]."""

    __slots__ = ()

    alarm: NDArray[np.bool_]
    start: Indices

    @property
    def first(self) -> Indices:
        """The index of the night each stream first alarmed, -1 for never, [streams]."""
        return np.where(self.alarm.any(axis=1), self.alarm.argmax(axis=1), -1)

    @property
    def since(self) -> Indices:
        """The estimated first night of the change, as of the first alarm, -1 for none, [streams]."""
        first = self.first
        return np.where(first >= 0, self.start[np.arange(first.size), np.maximum(first, 0)], -1)
