"""One answered prompt, made ready for the judges."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from logprob_drift.alignment import Aligned, Defect, align
from logprob_drift.context_curve import Row
from logprob_drift.divergence import Divergence, diverge
from logprob_drift.floor import floor_of
from logprob_drift.vocabulary import Vocabulary
from probes.context_curve import CurvePrompt
from ringtrue.endpoint import LogprobRow
from ringtrue.records import Exchange
from tokenizer_checks.comparison import Comparison, compare


@dataclass(frozen=True, slots=True)
class Answered:
    """One prompt's exchange and what could be read from it.

    ``aligned`` is the usable top-k list, a `Defect` that makes it unusable, or
    ``None`` when the server sent no logprobs. It is read for failed exchanges
    as well: what arrived before a stream broke is not thrown away, but a
    failed exchange is never `usable`.
    """

    prompt: CurvePrompt
    exchange: Exchange
    comparison: Comparison
    aligned: Aligned | Defect | None

    @property
    def usable(self) -> bool:
        """Whether this answer's logprobs can be compared at all."""
        return self.exchange.error is None and isinstance(self.aligned, Aligned)

    @property
    def comparable(self) -> bool:
        """Whether they can be compared on the expected token IDs."""
        return self.usable and self.comparison.on_expected_ids


def read(
    prompt: CurvePrompt,
    exchange: Exchange,
    expected: tuple[int, ...],
    vocabulary: Vocabulary,
    *,
    asked: int,
    nearby: Collection[tuple[int, ...]] = (),
) -> Answered:
    """Read one exchange; ``asked`` is the k that was requested, ``nearby`` as in `compare`."""
    usage = exchange.usage
    comparison = compare(
        expected, exchange.prompt_token_ids, usage.prompt_tokens if usage else None, nearby=nearby
    )
    positions = exchange.top_logprobs
    aligned = align(positions[0], vocabulary, asked=asked) if positions else None
    return Answered(prompt, exchange, comparison, aligned)


def against(answer: Answered, reference: LogprobRow) -> Divergence:
    """Return a usable answer's divergence from a reference row (shape [vocabulary], nats).

    Raises:
        TypeError: when the answer is not usable.
    """
    if not isinstance(answer.aligned, Aligned):
        raise TypeError(f"answer to {answer.prompt.id} has no usable logprobs")
    return diverge(reference, answer.aligned)


def row_of(answer: Answered, divergence: Divergence, reference: LogprobRow, honest: Aligned) -> Row:
    """Return the prompt's D beside its floor F, the same statistic at the same k."""
    return Row(
        bucket=answer.prompt.bucket,
        d=divergence.kl,
        f=floor_of(reference, honest, divergence.k),
        session=answer.exchange.request.session,
    )
