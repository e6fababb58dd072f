from __future__ import annotations

import random

import pytest

from probes.retry import pause_before_retry, retry_after
from ringtrue.records import Failure, FailureKind, Limits

NOON = 1772366400.0  # 2026-03-01 12:00:00 UTC


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Sun, 01 Mar 2026 12:00:20 GMT", 20.0),
        ("Sun, 01 Mar 2026 12:00:20", 20.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_in_seconds_and_as_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, now=NOON) == seconds


def test_the_pause_doubles_at_most_and_is_drawn_from_its_whole_range() -> None:
    failure, limits = Failure(FailureKind.SERVER_ERROR, ""), Limits(max_attempts=10, max_retry_wait=3.0)
    rng = random.Random(0)  # noqa: S311  the jitter of retries
    for attempt, most in ((1, 0.5), (2, 1.0), (3, 2.0), (4, 3.0), (9, 3.0)):
        pauses = [pause_before_retry(failure, attempt, limits, rng) for _ in range(500)]
        known = [pause for pause in pauses if pause is not None]
        assert len(known) == 500
        assert 0.0 <= min(known) < 0.1 * most
        assert 0.9 * most < max(known) <= most


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.TLS,
        FailureKind.UNAUTHORIZED,
        FailureKind.MODEL_NOT_FOUND,
        FailureKind.NOT_FOUND,
        FailureKind.REFUSED,
        FailureKind.CAPABILITY_REFUSED,
        FailureKind.TRUNCATED,
        FailureKind.NOT_JSON,
        FailureKind.HTML,
        FailureKind.BAD_SHAPE,
    ],
)
def test_what_asking_again_cannot_mend_is_not_asked_again(kind: FailureKind) -> None:
    rng = random.Random(0)  # noqa: S311  the jitter of retries
    assert pause_before_retry(Failure(kind, ""), 1, Limits(), rng) is None
