"""What nights before this one measured at lengths whose prompts take turns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from logprob_drift.context_curve import Row
from logprob_drift.night import FEW_NEED
from ringtrue.nightly_numbers import Reading
from ringtrue.store import Store

_READING = Reading(("kl_least", "kl_floor_mean"), believed=True)


def earlier_rows(
    store: Store, endpoint: str, basis: str, lengths: Collection[int], *, run: str, at: datetime
) -> Mapping[int, Sequence[Row]]:
    """Return, by length (tokens), one row a night before that of ``at``, the newest last.

    Of nights of the same ``basis`` whose token IDs were the model's own and
    whose logprobs were believed, at most as many as `trace` can use. A run
    earlier the same day asked the same prompts, and is left out.

    Raises:
        StoreError: The store refused.
    """
    if not lengths:
        return {}
    nights = store.nights(endpoint, basis, _READING, run=run, counts=False, limit=FEW_NEED)
    before = [night.numbers for night in nights if night.started.date() < at.date()]
    return {
        length: [
            Row(length, numbers["kl_least", length][0], numbers["kl_floor_mean", length][0])
            for numbers in before
            if ("kl_least", length) in numbers and ("kl_floor_mean", length) in numbers
        ][-(FEW_NEED - 1) :]
        for length in lengths
    }
