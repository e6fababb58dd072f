"""The reference's side of the sampled tokens: which prompts are asked, and what each may answer."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evals.parts.token_names import UNNAMED, TokenNames, name_tokens
from evals.truth import FloorCache, FloorTable
from logprob_drift.token_only.sampling_alternatives import (
    LEAST,
    Head,
    Null,
    head_of,
    null_of,
    temperature_information,
)
from logprob_drift.vocabulary import Vocabulary
from probes.context_curve import CurvePrompt
from probes.sampled_tokens import sampled_candidates
from ringtrue.endpoint import LogprobRow, Reference

_HONEST_ROWS = 2  # batchings in which an honest server's rows are computed


@dataclass(frozen=True, slots=True)
class SampledPrompt:
    """A prompt that is asked, its expected IDs, and the distribution of its next token by the reference.

    ``cells`` gives the cell of each group of `TokenNames` that has one.
    """

    prompt: CurvePrompt
    ids: tuple[int, ...]
    head: Head
    null: Null
    cells: Mapping[int, int]

    def cell(self, group: int) -> int:
        """Return the cell of a token of ``group``."""
        return self.cells.get(group, self.null.rest)

    @property
    def collision(self) -> float:
        """How probable it is that two draws are in one cell: at least as probable as equal tokens."""
        return float(np.exp(2 * self.null.p).sum())


@dataclass(frozen=True, slots=True)
class Sampled:
    """The prompts that are asked, and how their answers are read."""

    prompts: tuple[SampledPrompt, ...]
    names: TokenNames
    vocabulary: Vocabulary


class SampledTruth:
    """Chooses the prompts and computes their distributions, once, whoever asks and however many at once.

    Of ``candidates`` the ``prompts`` are taken whose draws tell most of the
    temperature. ``cache`` keeps which those are.
    """

    def __init__(
        self,
        reference: Reference,
        *,
        seed: int,
        floor_dtype: str,
        candidates: int,
        prompts: int,
        cache: FloorCache | None = None,
    ) -> None:
        """Cut the candidates; nothing is computed yet.

        Raises:
            ConfigError: they do not fit the model's context, or the texts hold too few.
        """
        self.candidates = sampled_candidates(reference, candidates, seed=seed)
        self.expected = {one.id: reference.render(one.messages) for one in self.candidates}
        self._reference = reference
        self._seed = seed
        self._dtype = floor_dtype
        self._prompts = prompts
        self._cache = cache
        self._found: asyncio.Task[Sampled] | None = None

    @property
    def key(self) -> str:
        """A hash of the reference, the candidates and the settings: 64 hex digits."""
        settings = (self._seed, self._dtype, self._prompts)
        depends = ("sampled", self._reference.fingerprint, settings, sorted(self.expected.items()))
        return hashlib.sha256(repr(depends).encode()).hexdigest()

    async def sampled(self) -> Sampled:
        """Return the prompts, those that tell most first."""
        if self._found is None or _failed(self._found):
            self._found = asyncio.create_task(self._find())
        return await asyncio.shield(self._found)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        if self._found is not None and not self._found.done():
            self._found.cancel()
            await asyncio.gather(self._found, return_exceptions=True)

    async def _find(self) -> Sampled:
        kept = await self._cache.get(self.key) if self._cache is not None else None
        some = [one for one in self.candidates if kept is None or one.id in kept]
        rows = await asyncio.gather(*(self._reference.next_token(self.expected[one.id]) for one in some))
        names = await asyncio.to_thread(self._name, rows)
        told = np.array([temperature_information(row, names.groups) for row in rows])
        best = np.argsort(-told, kind="stable")[: self._prompts]
        if self._cache is not None and kept is None:
            table: FloorTable = {some[i].id: [[float(told[i])]] for i in best}
            await self._cache.put(self.key, table)
        chosen = [some[i] for i in best]
        honest = [
            await self._reference.jittered(
                [self.expected[one.id] for one in chosen], dtype=self._dtype, seed=self._seed + turn
            )
            for turn in range(_HONEST_ROWS)
        ]
        prompts = await asyncio.to_thread(
            lambda: tuple(
                self._prompt(one, rows[i], [drawn[at] for drawn in honest], names)
                for at, (one, i) in enumerate(zip(chosen, best, strict=True))
            )
        )
        reference = self._reference
        vocabulary = await asyncio.to_thread(
            Vocabulary.build, reference.vocabulary_size, reference.token_bytes
        )
        return Sampled(prompts, names, vocabulary)

    def _name(self, rows: Sequence[LogprobRow]) -> TokenNames:
        likely = {int(token) for row in rows for token in np.flatnonzero(row >= np.log(LEAST / 2))}
        return name_tokens(self._reference, sorted(likely))

    def _prompt(
        self, prompt: CurvePrompt, row: LogprobRow, honest: Sequence[LogprobRow], names: TokenNames
    ) -> SampledPrompt:
        head = head_of(row, names.groups)
        groups = names.groups[head.ids]
        null, cell = null_of(head, groups, honest)
        cells = {
            int(group): int(at)
            for group, at in zip(groups, cell, strict=True)
            if group != UNNAMED and at != null.rest
        }
        return SampledPrompt(prompt, self.expected[prompt.id], head, null, cells)


def _failed(task: asyncio.Task[Sampled]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
