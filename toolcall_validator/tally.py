"""Counting judged exchanges: what goes into which rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolcall_validator.judgement import Judgement
from toolcall_validator.metrics import (
    RATES,
    SCHEMA_CODES,
    Metrics,
    Parity,
    Rate,
    Trigger,
    difference_interval,
)

_OF = {
    "effective_rate": "due",
    "request_validity": "answers",
    "call_validity": "emitted",
    "id_integrity": "delivered",
    "finish_consistency": "answers",
    "structured_validity": "structured",
    "leak_rate": "answers",
    "empty_rate": "answers",
    "loop_rate": "answers",
    "script_rate": "answers",
    "hidden_length_rate": "counted",
    "missing_usage_rate": "usage",
    "first_attempt_availability": "asked",
} | dict.fromkeys(SCHEMA_CODES, "delivered")
"""What each rate is a share of."""
_WITH: Mapping[str, tuple[str, ...]] = {
    "leak_rate": ("leak.",),
    "empty_rate": ("output.empty", "output.reasoning_only"),
    "loop_rate": ("output.degenerate_loop", "output.runaway_calls"),
    "script_rate": ("output.unexpected_script",),
    "hidden_length_rate": ("finish.length_hidden",),
    "missing_usage_rate": ("usage.missing",),
}
"""Shares of answers that have one of these codes."""


@dataclass(slots=True)
class _Base:
    """What rates are shares of: so many, of so many prompts; ``bit`` marks the prompts that are counted."""

    bit: int
    trials: int = 0
    prompts: int = 0


@dataclass(slots=True)
class _Prompt:
    """What is kept of a prompt: the bases it is in, its valid answers, and its first answer in each form."""

    seen: int = 0
    answers: int = 0
    valid: int = 0
    plain: tuple[bool, str] | None = None
    streamed: tuple[bool, str] | None = None


class Tally:
    """Counts one endpoint's judgements, one at a time; keeps no answer, and a few numbers of each prompt."""

    def __init__(self) -> None:
        self._bases = {name: _Base(1 << place) for place, name in enumerate(dict.fromkeys(_OF.values()))}
        self._events: Counter[str] = Counter()
        self._prompts: dict[str, _Prompt] = {}
        self._trigger = _Agreement()
        self._rerun = _Agreement()
        self._exchanges = 0
        self._scored = 0

    def add(
        self,
        prompt: str,
        judgement: Judgement,
        *,
        first_attempt: bool | None = None,
        reference_called: bool | None = None,
        due: bool | None = None,
    ) -> None:
        """Count one exchange of the prompt known by the key ``prompt``.

        ``first_attempt`` says whether it was answered without a retry, where
        that is known. ``reference_called`` says whether the reference answers
        this prompt by a call, where it was asked; F1 is that of prompts that
        leave the choice. A call is ``due`` when that is said, else when the
        request leaves no choice, or the reference calls. An answer that the
        caller's cap ended before it could call counts in neither.
        """
        kept = self._prompts.get(prompt)
        if kept is None:
            kept = self._prompts[prompt] = _Prompt()
        self._exchanges += 1
        if first_attempt is not None:
            self._count("asked", kept)
            self._events["first_attempt_availability"] += first_attempt
        if not judgement.scored:
            return
        self._scored += 1
        self._count_answer(kept, judgement)
        if judgement.spent:
            return
        if (judgement.due or bool(reference_called)) if due is None else due:
            self._count("due", kept)
            self._events["effective_rate"] += judgement.calls.sound > 0
        if reference_called is not None and not judgement.due:
            self._trigger.add(prompt, said=judgement.called, true=reference_called)

    def add_rerun(self, prompt: str, *, first: bool, again: bool) -> None:
        """Count the reference's second answer to a prompt against its first: whether each called."""
        self._rerun.add(prompt, said=again, true=first)

    @property
    def valid_by_prompt(self) -> Mapping[str, float]:
        """The share of valid answers of each prompt that was answered."""
        return {prompt: kept.valid / kept.answers for prompt, kept in self._prompts.items() if kept.answers}

    def metrics(self) -> Metrics:
        """Return what was counted so far."""
        rates = {}
        for name in (*RATES, *SCHEMA_CODES):
            base = self._bases[_OF[name]]
            if base.trials:
                rates[name] = Rate(self._events[name], base.trials, base.prompts)
        return Metrics(
            rates,
            self._parity(),
            self._trigger.measured,
            self._rerun.measured,
            self._exchanges,
            self._scored,
        )

    def _count_answer(self, kept: _Prompt, judgement: Judgement) -> None:
        calls, events = judgement.calls, self._events
        self._count("answers", kept)
        if calls.emitted:
            self._count("emitted", kept, calls.emitted)
            events["call_validity"] += calls.sound
        if calls.delivered:
            self._count("delivered", kept, calls.delivered)
            events["id_integrity"] += calls.identified
        for asked, base in (
            (judgement.structured, "structured"),
            (judgement.counted, "counted"),
            (judgement.wants_usage, "usage"),
        ):
            if asked:
                self._count(base, kept)
        valid = not judgement.failed
        kept.answers += 1
        kept.valid += valid
        events["request_validity"] += valid
        events["finish_consistency"] += not _has(judgement, "finish.")
        events["structured_validity"] += judgement.structured and not _has(
            judgement, "output.structured_invalid"
        )
        if judgement.faults:
            self._count_faults(judgement)
        # Only the first answer of each form: a pair is two answers to one prompt, not a crowd.
        if judgement.streamed:
            kept.streamed = kept.streamed or (not valid, judgement.outcome)
        else:
            kept.plain = kept.plain or (not valid, judgement.outcome)

    def _count_faults(self, judgement: Judgement) -> None:
        codes = {found.code for found in judgement.faults}
        for name, wanted in _WITH.items():
            known = judgement.counted or name != "hidden_length_rate"
            self._events[name] += known and any(code.startswith(wanted) for code in codes)
        for code in codes.intersection(SCHEMA_CODES):
            self._events[code] += len({one.call for one in judgement.failed if one.code == code})

    def _count(self, base: str, kept: _Prompt, trials: int = 1) -> None:
        counted = self._bases[base]
        counted.trials += trials
        if not kept.seen & counted.bit:
            kept.seen |= counted.bit
            counted.prompts += 1

    def _parity(self) -> Parity | None:
        count = more = less = broken = 0
        for kept in self._prompts.values():
            if kept.plain is None or kept.streamed is None:
                continue
            count += 1
            more += kept.streamed[0] and not kept.plain[0]
            less += kept.plain[0] and not kept.streamed[0]
            broken += kept.plain[1] != kept.streamed[1]
        if not count:
            return None
        return Parity((more - less) / count, difference_interval(more, less, count), count, broken)


@dataclass(slots=True)
class _Agreement:
    """Counts of "says call" against "is a call"."""

    both: int = 0
    one: int = 0
    prompts: set[str] = field(default_factory=set)

    def add(self, prompt: str, *, said: bool, true: bool) -> None:
        if said or true:
            self.both += said and true
            self.one += said is not true
            self.prompts.add(prompt)

    @property
    def measured(self) -> Trigger | None:
        return Trigger(self.both, self.one, len(self.prompts)) if self.prompts else None


def _has(judgement: Judgement, code: str) -> bool:
    return any(found.code.startswith(code) for found in judgement.faults)
