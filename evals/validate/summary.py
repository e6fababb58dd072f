"""What was found in all exchanges of a recording, by endpoint and code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evals.validate.running import BrokenPair, Identity, JudgedRecord
from ringtrue.records import Severity
from toolcall_validator.differences import Difference
from toolcall_validator.fault import CODES, Fault
from toolcall_validator.metrics import Metrics

_EXAMPLES = 3
_RANK = {code: rank for rank, code in enumerate(CODES)}


@dataclass(slots=True)
class Seen:
    """One code at one endpoint: in how many exchanges, how loud, whose, and the first places."""

    severity: Severity
    parties: set[str] = field(default_factory=set)
    exchanges: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, record: Identity, faults: list[Fault]) -> None:
        """Take note of one exchange and its faults of this code."""
        self.exchanges += 1
        self.parties |= {fault.party.value for fault in faults}
        if len(self.places) < _EXAMPLES:
            self.places.append(_place(record, faults[0]))


@dataclass(slots=True)
class Summary:
    """The faults by endpoint and code, beside the metrics by endpoint once all is judged."""

    seen: dict[str, dict[str, Seen]] = field(default_factory=dict)
    exchanges: int = 0
    scored: int = 0
    metrics: Mapping[str, Metrics] = field(default_factory=dict)
    differences: Mapping[tuple[str, str], Difference] = field(default_factory=dict)
    broken_pairs: Sequence[BrokenPair] = ()

    def add(self, record: JudgedRecord) -> None:
        """Count one exchange."""
        self.exchanges += 1
        self.scored += record.judgement.scored
        mine = self.seen.setdefault(record.endpoint, {})
        for code in dict.fromkeys(fault.code for fault in record.judgement.faults):
            faults = [fault for fault in record.judgement.faults if fault.code == code]
            mine.setdefault(code, Seen(faults[0].severity)).add(record.id, faults)

    def of(self, endpoint: str) -> list[tuple[str, Seen]]:
        """Return the codes of one endpoint, most upstream first."""
        return sorted(self.seen.get(endpoint, {}).items(), key=lambda item: _RANK[item[0]])

    @property
    def failed(self) -> bool:
        """Whether any exchange has a fail fault, or any pair differs."""
        return bool(self.broken_pairs) or any(
            one.severity is Severity.FAIL for codes in self.seen.values() for one in codes.values()
        )


def _place(record: Identity, fault: Fault) -> str:
    """Return where a fault was seen, for a person: exchange, call, field and bytes."""
    words = [str(record)]
    if fault.call is not None:
        words.append(f"call {fault.call}")
    span = fault.span
    if span is not None:
        if span.chunk is not None:
            words.append(f"chunk {span.chunk}")
        words.append(span.field if span.start is None else f"{span.field} {span.start}-{span.end}")
    return ", ".join(words)
