"""When to ask again, and after how long."""

from __future__ import annotations

import math
import random
from datetime import UTC
from email.utils import parsedate_to_datetime

from ringtrue.records import Failure, FailureKind, Limits

_FIRST_PAUSE = 0.5  # seconds; doubles with each attempt
_RETRIED = frozenset(
    {
        FailureKind.UNREACHABLE,
        FailureKind.CONNECT_TIMEOUT,
        FailureKind.FIRST_BYTE_TIMEOUT,
        FailureKind.READ_TIMEOUT,
        FailureKind.RATE_LIMITED,
        FailureKind.SERVER_ERROR,
    }
)


def pause_before_retry(failure: Failure, attempt: int, limits: Limits, rng: random.Random) -> float | None:
    """Seconds to wait before the attempt after number ``attempt`` (from 1), or ``None`` to give up.

    The server's own wish is obeyed; one beyond ``max_retry_wait`` means giving
    up. Without a wish: exponential backoff with full jitter.
    """
    if failure.kind not in _RETRIED or attempt >= limits.max_attempts:
        return None
    if failure.retry_after is not None:
        return failure.retry_after if failure.retry_after <= limits.max_retry_wait else None
    return rng.uniform(0.0, min(limits.max_retry_wait, _FIRST_PAUSE * 2.0 ** (attempt - 1)))


def retry_after(value: str | None, *, now: float) -> float | None:
    """Seconds meant by a Retry-After header, given in seconds or as an HTTP date.

    ``now`` is the time of day in seconds since the epoch. A date in the past
    is 0; a header that is neither is ``None``.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        # An HTTP date is GMT, also where a server left the zone out.
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    return max(0.0, seconds) if math.isfinite(seconds) else None
