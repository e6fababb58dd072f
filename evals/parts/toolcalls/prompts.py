"""What became of one request of the suite: its two answers, their faults, and who is to blame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from probes.toolcall_suite.prompt import ToolPrompt
from ringtrue.records import Check, Exchange, Party, Severity
from toolcall_validator.fault import CODES, Fault
from toolcall_validator.judgement import Judgement

_RANK = {code: rank for rank, code in enumerate(CODES)}
_NOT_OURS = "request.broken_schema"


class Form(StrEnum):
    """How an answer was asked for."""

    PLAIN = "plain"
    STREAMED = "streamed"


class Source(StrEnum):
    """Where the raw text came from that was put beside an answer."""

    OWN = "own"  # the tokens of the answer itself
    AGAIN = "again"  # the same prompt, asked as token IDs


@dataclass(frozen=True, slots=True)
class JudgedPrompt:
    """One request with its answers by form; a form that was not answered is missing.

    So is one that was ``cut``: it ended at our cap before it could be sound, and
    has no fault but that.

    ``faults`` holds those of each answer, with the party that the raw text
    named, ``judgements`` what metrics count. ``pair`` holds
    ``stream.parity``. ``source`` is ``None`` where no raw text was put beside
    the answers.
    """

    prompt: ToolPrompt
    answers: Mapping[Form, Exchange]
    faults: Mapping[Form, tuple[Fault, ...]]
    judgements: Mapping[Form, Judgement]
    pair: tuple[Fault, ...] = ()
    source: Source | None = None
    cut: frozenset[Form] = frozenset()

    @property
    def scored(self) -> bool:
        """Whether it was answered at all, and with schemas that a server can follow."""
        return bool(self.answers) and not self.broken

    @property
    def broken(self) -> bool:
        """Whether a schema of the caller's does not compile."""
        return any(one.code == _NOT_OURS for one in self.all_faults)

    def failed(self, check: Check) -> dict[str, frozenset[Form]]:
        """Return the fail codes of one check that are neither the model's own nor the caller's, by form."""
        return self._codes(check, models_own=False)

    def models_own(self) -> dict[str, frozenset[Form]]:
        """Return the fail codes of which the raw text shows that the model wrote them so."""
        return self._codes(Check.TOOLCALLS, models_own=True) | self._codes(Check.OUTPUT, models_own=True)

    @property
    def all_faults(self) -> tuple[Fault, ...]:
        """The faults of both answers, and of the pair."""
        return (*(one for faults in self.faults.values() for one in faults), *self.pair)

    def worst(self, check: Check) -> str | None:
        """Return the most upstream of the failed codes."""
        return min(self.failed(check), key=_RANK.__getitem__, default=None)

    def _codes(self, check: Check, *, models_own: bool) -> dict[str, frozenset[Form]]:
        found: dict[str, set[Form]] = {}
        placed = [(form, one) for form, faults in self.faults.items() for one in faults]
        placed += [(Form.STREAMED, one) for one in self.pair]
        for form, one in placed:
            if one.severity is not Severity.FAIL or one.party is Party.CALLER:
                continue
            if (one.party is Party.MODEL) is models_own and check_of(one.code) is check:
                found.setdefault(one.code, set()).add(form)
        return {code: frozenset(found[code]) for code in sorted(found, key=_RANK.__getitem__)}


def check_of(code: str) -> Check:
    """Return the check that a code belongs to: the shape of output has its own."""
    return Check.OUTPUT if code.startswith("output.") else Check.TOOLCALLS
