"""What one exchange came to: its faults, and the counts that metrics are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ringtrue.records import Party, Severity
from toolcall_validator.case import Case, json_of
from toolcall_validator.fault import Fault
from toolcall_validator.leaked import leaked_calls

_HOW_ASKED = ("stream", "stream_options", "user", "prompt_cache_key", "seed", "model")


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one answer.

    ``emitted`` counts what was ``delivered`` and what leaked (`leaked_calls`).
    A call that was cut at the caller's cap is not among them. ``sound`` are
    delivered and have no fail fault of their own; ``identified`` have no fault
    of their identity.
    """

    delivered: int = 0
    emitted: int = 0
    sound: int = 0
    identified: int = 0

    def __add__(self, other: Calls) -> Calls:
        """Return both together."""
        return Calls(
            self.delivered + other.delivered,
            self.emitted + other.emitted,
            self.sound + other.sound,
            self.identified + other.identified,
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """One exchange, judged.

    ``answered`` is false where there was no answer, or an error alone; it then
    has no faults. ``due`` says that the request left no choice but to call.
    ``cut`` says that it ended at the caller's cap, ``counted`` whether cap and
    tokens of the answer are both known. ``wants_usage`` and ``structured`` say
    what the request asked for beside.
    """

    answered: bool
    streamed: bool = False
    faults: tuple[Fault, ...] = ()
    calls: Calls = Calls()
    due: bool = False
    cut: bool = False
    counted: bool = False
    wants_usage: bool = False
    structured: bool = False

    @property
    def scored(self) -> bool:
        """Whether the answer counts: a request whose own schema is broken scores nobody."""
        broken = any(one.code == "request.broken_schema" for one in self.faults)
        return self.answered and not broken

    @property
    def failed(self) -> tuple[Fault, ...]:
        """The fail faults that are not the caller's own doing."""
        return tuple(one for one in self.faults if _counts(one))

    @property
    def called(self) -> bool:
        """Whether a call was delivered."""
        return self.calls.delivered > 0

    @property
    def spent(self) -> bool:
        """Whether the caller's cap ended it before it could go right or wrong."""
        return self.cut and not self.failed and self.calls.sound == 0

    @property
    def outcome(self) -> str:
        """Its class: the most upstream fail code outside ``stream.*``, else ``call`` or ``text``."""
        failed = (one.code for one in self.faults if one.severity is Severity.FAIL)
        worst = next((code for code in failed if not code.startswith("stream.")), None)
        return worst or ("call" if self.called else "text")


def count_calls(case: Case, faults: Sequence[Fault]) -> Calls:
    """Return the calls of one choice; ``faults`` are those of that choice."""
    delivered = len(case.calls)
    if not faults:
        return Calls(delivered, delivered, delivered, delivered)
    ours = {one.call for one in faults if _counts(one)} - {None}
    cut = {one.call for one in faults if one.party is Party.CALLER and one.severity is Severity.FAIL} - {None}
    nameless = {one.call for one in faults if one.code.startswith("id.")} - {None}
    return Calls(
        delivered=delivered,
        emitted=max(delivered - len(cut - ours), 0) + leaked_calls(case, faults),
        sound=max(delivered - len(ours | cut), 0),
        identified=max(delivered - len(nameless), 0),
    )


def prompt_key(record: object) -> str:
    """Return what a prompt is known by (16 hex digits): its request without how the answer was to come.

    Exchanges of one key asked the same: with a stream or without, of another
    model or session, with another seed.
    """
    body: Mapping[str, Any] = json_of(json_of(record).get("request"))
    asked = {name: value for name, value in body.items() if name not in _HOW_ASKED}
    try:
        text = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS, default=repr)
    except TypeError:  # lone surrogates, or nested too deep for this writer
        text = repr(asked).encode("utf-8", "backslashreplace")
    return hashlib.sha256(text).hexdigest()[:16]


def _counts(one: Fault) -> bool:
    return one.severity is Severity.FAIL and one.party is not Party.CALLER
