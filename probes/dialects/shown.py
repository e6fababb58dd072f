"""What one way of asking tells of a prompt, judged: IDs are taken as they stand, or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from ringtrue.records import Exchange

MOST_IDS = 1 << 24
"""No model's context is that long: a longer list fills memory and says nothing."""

_GREATEST = (1 << 31) - 1  # engines keep IDs in 32 bits


@dataclass(frozen=True, slots=True)
class Found:
    """What an answer says of its prompt, as it stands there: nothing is judged yet.

    ``problem`` is what the reader of the answer knows to be wrong with the IDs.
    """

    ids: object = None
    count: object = None
    text: object = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What one way of asking a server shows of a chat's prompt.

    ``used`` ones are of an answered request for this very chat. The others are
    what a route that renders says it would use, or what another route made of
    IDs or text that was shown before. ``count`` is the number of prompt tokens
    as the server counted them, ``text`` the prompt where it shows text.
    ``problem`` says in words why there are no IDs, or what is wrong with the
    count.
    """

    way: str
    used: bool
    ids: tuple[int, ...] | None
    count: int | None
    text: str | None = None
    problem: str | None = None
    exchange: Exchange | None = None


def judge(
    way: str,
    found: Found,
    *,
    used: bool,
    vocabulary_size: int | None,
    without: str = "the answer holds no token IDs",
    exchange: Exchange | None = None,
) -> Shown:
    """Return what ``found`` amounts to; ``without`` says why there are no IDs where there are none."""
    ids, problem = read_ids(found.ids, vocabulary_size=vocabulary_size, without=without)
    if found.problem is not None:
        ids, problem = None, found.problem
    count = found.count if type(found.count) is int and found.count >= 0 else None
    if count is None and found.count is not None:
        miscounted = "the count of prompt tokens is no whole number from 0 on"
        problem = miscounted if problem is None else f"{problem}; {miscounted}"
    text = found.text if isinstance(found.text, str) else None
    return Shown(way, used, ids, count, text, problem, exchange)


def read_ids(
    value: object, *, vocabulary_size: int | None = None, without: str = "the answer holds no token IDs"
) -> tuple[tuple[int, ...] | None, str | None]:
    """Return the token IDs in ``value``, or ``None`` and what is wrong with it in words.

    Whole numbers alone count as IDs. Text, booleans, fractions, nested lists
    and numbers outside of the vocabulary make the whole list worthless: one
    that is cast would hide what the server really did. An empty list is no
    prompt. ``without`` is what to say of null.
    """
    if value is None:
        return None, without
    if not isinstance(value, list):
        return None, f"{_kind(value)} where a list of token IDs was due"
    if not 0 < len(value) <= MOST_IDS:
        return None, f"{len(value):,} token IDs are no prompt: there are 1 to {MOST_IDS:,}"
    limit = _GREATEST + 1 if vocabulary_size is None else vocabulary_size
    wrong = next(
        (at for at, item in enumerate(value) if type(item) is not int or not 0 <= item < limit), None
    )
    return (tuple(value), None) if wrong is None else (None, _wrong(value[wrong], wrong, limit))


def _wrong(item: object, at: int, limit: int) -> str:
    if type(item) is not int:
        return f"{_kind(item)} where a token ID was due, at index {at:,}"
    return f"{item} at index {at:,} is no token ID: they go from 0 to {limit - 1:,}"


def _kind(value: object) -> str:
    """What a JSON value is, in words; the value itself may be somebody's text."""
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "text", float: "a fractional number", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
