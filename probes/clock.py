"""Time as a parameter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Clock:
    """The three ways to meet time: a stop-watch (seconds), the time of day (UTC), and waiting (seconds)."""

    monotonic: Callable[[], float]
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]


def system_clock() -> Clock:
    """The clock of this machine; ``monotonic`` is ``time.perf_counter``."""
    return Clock(time.perf_counter, lambda: datetime.now(UTC), asyncio.sleep)
