"""The answers of one endpoint's sessions, as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evals import answers
from evals.parts.sieve import Sieve
from logprob_drift.alarms.session_scores import Fingerprint, cut_of, session_scores
from logprob_drift.findings import Basis
from logprob_drift.vocabulary import Vocabulary
from probes.context_curve import CurvePrompt
from ringtrue.endpoint import Reference
from ringtrue.records import Exchange
from ringtrue.stats import Values


class SessionAnswers:
    """Divergences by session and prompt.

    A session is measured when all of its prompts are: a mean over fewer would
    be another number.
    """

    def __init__(
        self,
        prompts: Sequence[CurvePrompt],
        expected: Sequence[tuple[int, ...]],
        reference: Reference,
        vocabulary: Vocabulary,
        *,
        k: int,
    ) -> None:
        self.prompts = tuple(prompts)
        self.sieve = Sieve()
        self._expected = tuple(expected)
        self._reference = reference
        self._vocabulary = vocabulary
        self._k = k
        self._divergences: dict[str, list[float]] = {}
        self._unusable = 0

    async def take(self, prompt: int, exchange: Exchange) -> None:
        """Keep the answer to the prompt of that index."""
        session = exchange.request.session or ""
        mine = self._divergences.setdefault(session, [np.nan] * len(self.prompts))
        expected = self._expected[prompt]
        if not self.sieve.lets_through(exchange, expected):
            return
        answer = answers.read(self.prompts[prompt], exchange, expected, self._vocabulary, asked=self._k)
        if answer.comparable:
            mine[prompt] = answers.against(answer, await self._reference.next_token(expected)).kl
        else:
            self._unusable += 1

    @property
    def asked(self) -> int:
        """The number of sessions."""
        return len(self._divergences)

    @property
    def scores(self) -> Values:
        """The score of each session, NaN where it is not measured."""
        return session_scores(np.array(list(self._divergences.values())).reshape(-1, len(self.prompts)))

    @property
    def basis(self) -> Basis:
        """What was left out, for the judges."""
        unusable = {"not comparable": self._unusable} if self._unusable else {}
        return replace(self.sieve.basis, unusable=unusable)

    def bad(self, honest: Fingerprint | None) -> list[str]:
        """Return the keys of the bad sessions."""
        scores = self.scores
        measured = scores[~np.isnan(scores)]
        if honest is None or measured.size == 0:
            return []
        cut = cut_of(measured, honest)
        keys = zip(self._divergences, scores, strict=True)
        return [] if cut.everywhere else [key for key, score in keys if score > cut.score]
