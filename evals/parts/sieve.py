"""Which answers may be compared, and what became of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evals.parts.answered_ids import same_ids
from logprob_drift.findings import Basis
from ringtrue.records import Exchange

WITHHELD = "withheld: the token IDs differ (see tokens)"


@dataclass(slots=True)
class Sieve:
    """Counts of one part's answers.

    Of ``answered`` ones, ``withheld`` were to prompts whose token IDs differ,
    and ``unreadable`` do not show which tokens were generated. ``counted``
    says that the IDs of some prompts were taken as equal though the server
    did not show them.
    """

    answered: int = 0
    withheld: int = 0
    unreadable: int = 0
    counted: bool = False

    def lets_through(self, exchange: Exchange, expected: Sequence[int]) -> bool:
        """Return whether this is an answer to the prompt that was meant, so far as the server shows."""
        if exchange.error is not None:
            return False
        self.answered += 1
        same = same_ids(exchange, expected)
        if same is False:
            self.withheld += 1
            return False
        self.counted = self.counted or exchange.prompt_token_ids is None
        return True

    @property
    def mostly_withheld(self) -> bool:
        """Whether the token IDs of most answered prompts differ: the rest is then no sample of anything."""
        return 2 * self.withheld > self.answered

    @property
    def basis(self) -> Basis:
        """The same for the judges."""
        unusable = {"without_token_ids": self.unreadable} if self.unreadable else {}
        return Basis(self.withheld, counted=self.counted, unusable=unusable)
