"""Model or provider: who spoiled a call, told by the raw text beside the parsed answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ringtrue.records import Party
from toolcall_validator.families.leaks import LEAKS
from toolcall_validator.families.parsed import Parsed, RawCall, Trouble
from toolcall_validator.strict_json import Flaw, parse_strict

Fits: TypeAlias = Callable[[str, str], bool]
"""Whether the arguments (JSON text) of the named function meet its schema."""

_HARMLESS = frozenset(
    {Trouble.NO_ENVELOPE, Trouble.STRAY_MARKER, Trouble.STRAY_TEXT, Trouble.REASONING_UNCLOSED}
)
_MARKERS = frozenset(marker for markers in LEAKS.values() for marker in markers)


@dataclass(frozen=True, slots=True)
class Answered:
    """One call as the server delivered it."""

    name: str
    arguments: str


def blame(
    raw: Parsed, answered: Sequence[Answered], fits: Fits | None = None, shown: str = ""
) -> Party | None:
    """Return who has to act, ``None`` when raw text and answer are right and agree.

    ``provider`` when a call that stands right in the raw text is missing from
    the answer or altered there, whatever became of its neighbours; when the
    raw text is right throughout and the answer holds more; and when ``shown``
    (the answer's content and reasoning) holds a marker that the raw text has
    only as the frame of its calls. ``model`` when the raw text is wrong by
    itself: it can't be taken apart, or arguments are no JSON object or don't
    fit. Calls are compared as values, in order.
    """
    troubles: dict[int, set[Trouble]] = {place: set() for place in range(len(raw.calls))}
    for problem in raw.problems:
        if problem.call is not None:
            troubles[problem.call].add(problem.trouble)
    sound = [
        place for place, call in enumerate(raw.calls) if troubles[place] <= _HARMLESS and _sound(call, fits)
    ]
    clean = [raw.calls[place] for place in sound if not troubles[place]]
    if not _holds(answered, clean):
        return Party.PROVIDER
    broken = len(sound) < len(raw.calls) or any(
        problem.trouble not in _HARMLESS | {Trouble.UNCLOSED}
        for problem in raw.problems
        if problem.call is None
    )
    if broken or not _holds(answered, raw.calls):
        return Party.MODEL
    leaked = {marker for marker in _MARKERS if marker in shown}
    own = {marker for marker in leaked if any(marker in piece.text for piece in raw.leftovers)}
    if leaked and leaked == own:
        return Party.MODEL
    spoken = {marker for marker in leaked if marker in raw.content or marker in raw.reasoning}
    return Party.PROVIDER if len(answered) > len(raw.calls) or leaked - spoken else None


def _sound(call: RawCall, fits: Fits | None) -> bool:
    found = parse_strict(call.arguments)
    whole = found.flaw is None and isinstance(found.value, dict)
    return bool(call.name) and whole and (fits is None or fits(call.name, call.arguments))


def _holds(answered: Sequence[Answered], calls: Sequence[RawCall]) -> bool:
    """Tell whether the answer holds all these calls, in their order, among others perhaps."""
    rest = iter(answered)
    return all(any(_same(call, candidate) for candidate in rest) for call in calls)


def _same(call: RawCall, answered: Answered) -> bool:
    raw, parsed = parse_strict(call.arguments), parse_strict(answered.arguments)
    if call.name != answered.name or parsed.flaw is Flaw.NOT_JSON:
        return False
    try:
        return _equal(raw.value, parsed.value, loose=not call.typed)
    except RecursionError:  # nested too deep to compare as values
        return call.arguments == answered.arguments


def _equal(one: object, other: object, *, loose: bool) -> bool:
    """Tell whether two JSON values are equal; ``loose``: a string equals the value that it spells."""
    if isinstance(one, dict) and isinstance(other, dict):
        same_keys = one.keys() == other.keys()
        return same_keys and all(_equal(one[key], other[key], loose=loose) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        same_length = len(one) == len(other)
        return same_length and all(_equal(a, b, loose=loose) for a, b in zip(one, other, strict=True))
    if loose and isinstance(one, str) != isinstance(other, str):
        text, value = (one, other) if isinstance(one, str) else (other, one)
        return isinstance(text, str) and _equal(parse_strict(text.strip()).value, value, loose=False)
    return isinstance(one, bool) == isinstance(other, bool) and one == other
