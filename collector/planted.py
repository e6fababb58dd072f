"""The demo's replicas: what is wrong with each, and the verdict that must follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reference_engine.server.faults import Faults
from ringtrue.records import DRIFT, Cause, Check, State, Verdict

FAULTY_FROM = 1024  # tokens
ONSET = 2048  # tokens: the first probed length beyond it


@dataclass(frozen=True, slots=True)
class Planted:
    """One replica: what it serves, and the one check that must find its fault.

    ``states`` are those the check may end in. ``cause`` is ``None`` for a
    replica with no fault: then every check must be OK.
    """

    name: str
    variant: str
    what: str
    faults: Faults = field(default_factory=Faults)
    check: Check | None = None
    states: frozenset[State] = frozenset()
    cause: Cause | None = None
    onset: int | None = None

    def mismatch(self, verdicts: Sequence[Verdict]) -> str | None:
        """Return what in this replica's verdicts is not what was planted, or ``None``."""
        mine = [verdict for verdict in verdicts if verdict.endpoint == self.name]
        faulty = [v for v in mine if v.verdict in DRIFT]
        if self.check is None:
            wrong = [v for v in mine if v.verdict is not State.OK]
            return self._told(wrong) if wrong or not mine else None
        found = [v for v in faulty if v.check is self.check]
        if len(found) != 1 or len(faulty) != 1:
            return self._told(faulty)
        verdict = found[0]
        right = (verdict.verdict in self.states, verdict.cause is self.cause, verdict.onset == self.onset)
        return None if all(right) else self._told(faulty)

    def _told(self, verdicts: Sequence[Verdict]) -> str:
        wanted = "OK in every check" if self.check is None else f"{self.check} {self.cause}"
        got = ", ".join(f"{v.check} {v.verdict} {v.cause or ''} {v.onset or ''}".strip() for v in verdicts)
        return f"{self.name}: planted {wanted}, found {got or 'nothing'}"


PLANTED = (
    Planted("honest", "bf16", "the model itself, in bf16"),
    Planted(
        "int4",
        "int4+bf16",
        "weights rounded to 4 bits",
        check=Check.LOGPROBS,
        states=frozenset({State.WORSE}),
        cause=Cause.NUMERICS,
    ),
    Planted(
        "template",
        "bf16",
        "the chat template lost its generation prompt",
        Faults(drop_generation_prompt=True),
        Check.TOKENS,
        DRIFT,
        Cause.PROMPT,
    ),
    Planted(
        "truncated",
        "bf16",
        f"only the last {FAULTY_FROM:,} tokens of a prompt are read",
        Faults(truncate_context=FAULTY_FROM),
        Check.CONTEXT,
        DRIFT,
        Cause.CONTEXT,
        ONSET,
    ),
    Planted(
        "corrupted",
        "bf16",
        f"hidden states are wrong beyond position {FAULTY_FROM:,}",
        Faults(corrupt_beyond=FAULTY_FROM),
        Check.CONTEXT,
        DRIFT,
        Cause.CONTEXT,
        ONSET,
    ),
)


def mismatches(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return a sentence for each replica whose verdicts are not the planted ones."""
    told = (planted.mismatch(verdicts) for planted in PLANTED)
    return tuple(sentence for sentence in told if sentence is not None)
