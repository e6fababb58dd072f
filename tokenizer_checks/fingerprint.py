"""A number that says whether a prompt has the token IDs it had before, whatever day it is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tokenizer_checks.regions import DATE
from tokenizer_checks.vocabulary import Vocabulary

BITS = 52  # so many are exact in a float, as numbers of a night are kept
_A_DATE = -1


def fingerprint(ids: Sequence[int], vocabulary: Vocabulary) -> int:
    """Return a hash of the IDs in [0, 2**52): equal for equal ones, and where only dates differ.

    Tokens that hold a part of a date or a time of day, as ``vocabulary`` reads
    them, count as one mark, since a template may write the day. Two other
    lists of IDs share a hash with a chance of 2**-52.
    """
    return hash_of(_without_dates(ids, vocabulary))


def hash_of(values: object) -> int:
    """Return a hash in [0, 2**52) of what ``repr`` tells of a value."""
    digest = hashlib.sha256(repr(values).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - BITS)


def _without_dates(ids: Sequence[int], vocabulary: Vocabulary) -> tuple[int, ...]:
    texts = [vocabulary.text((token_id,)) for token_id in ids]
    dates = [match.span() for match in DATE.finditer("".join(texts))]
    if not dates:
        return tuple(ids)
    kept: list[int] = []
    start, nearest = 0, 0
    for token_id, text in zip(ids, texts, strict=True):
        stop = start + len(text)
        while nearest < len(dates) and dates[nearest][1] <= start:
            nearest += 1
        inside = nearest < len(dates) and dates[nearest][0] < stop
        if not inside:
            kept.append(token_id)
        elif not kept or kept[-1] != _A_DATE:
            kept.append(_A_DATE)
        start = stop
    return tuple(kept)
