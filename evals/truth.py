"""The reference's side of an examination, asked once and shared by all endpoints of a cycle."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from evals.dated import nearby
from logprob_drift.alignment import Aligned
from logprob_drift.floor import as_served
from logprob_drift.vocabulary import Vocabulary
from probes.context_curve import CurvePrompt
from probes.rotation import Tonight
from ringtrue.endpoint import LogprobRow, Reference

AGREEMENT = 2e-4  # nats; padded, chunked and batched float32 calls of one model stay within it
_GROUP_TOKENS = 4096  # floor prompts handed to the engine at once: bounds how long others wait
_AGAINST_ITSELF = 8  # prompts on which the reference is compared with itself

FloorTable = Mapping[str, Sequence[Sequence[float]]]
"""Honest top-k lists by prompt: ``[[token id, logprob], ...]``, as the store keeps them."""


class FloorCache(Protocol):
    """Where floors are kept between nights, by (weights, dtype, prompt set, k)."""

    async def get(self, key: str) -> FloorTable | None:
        """Return the table kept under ``key``."""

    async def put(self, key: str, table: FloorTable) -> None:
        """Keep ``table`` under ``key``."""


class Truth:
    """Expected IDs, exact rows and the noise floor of one prompt set.

    Everything is computed when first asked for and only once, whoever asks
    and however many ask at the same time. ``turning`` holds the lengths
    (tokens) whose prompts are others each night. ``nearby`` holds, by prompt,
    the IDs that are right the day before ``now`` and the day after, where the
    model's template writes the day.
    """

    def __init__(
        self,
        reference: Reference,
        prompts: Tonight | Sequence[CurvePrompt],
        *,
        floor_dtype: str,
        k: int,
        seed: int,
        cache: FloorCache | None = None,
        now: datetime | None = None,
    ) -> None:
        tonight = prompts if isinstance(prompts, Tonight) else Tonight(tuple(prompts))
        self.reference = reference
        self.prompts = tonight.prompts
        self.turning = frozenset(prompt.bucket for prompt in tonight.turning)
        self.expected = {prompt.id: reference.render(prompt.messages) for prompt in self.prompts}
        chats = {prompt.id: prompt.messages for prompt in self.prompts}
        self.nearby = {} if now is None else nearby(reference, chats, now)
        self._turns = tonight.turns
        self._steady = [prompt.id for prompt in tonight.steady]
        self._alone = [prompt.id for prompt in tonight.turning]
        self.k = k
        self._dtype = floor_dtype
        self._seed = seed
        self._cache = cache
        self._floors: asyncio.Task[Mapping[str, Aligned]] | None = None
        self._agreement: asyncio.Task[float] | None = None
        self._vocabulary: Vocabulary | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """The reference's tokens, indexed by their bytes."""
        if self._vocabulary is None:
            self._vocabulary = Vocabulary.build(self.reference.vocabulary_size, self.reference.token_bytes)
        return self._vocabulary

    async def row(self, prompt: CurvePrompt) -> LogprobRow:
        """Return the exact row after a prompt's expected IDs (shape [vocabulary], nats)."""
        return await self.reference.next_token(self.expected[prompt.id])

    async def floors(self) -> Mapping[str, Aligned]:
        """Return, by prompt, what an honest server in the floor's dtype would list."""
        if self._floors is None:
            self._floors = asyncio.create_task(self._measure_floors())
        return await asyncio.shield(self._floors)

    async def own_floors(self, sequences: Sequence[Sequence[int]]) -> list[Aligned]:
        """Return the same for other IDs: what an endpoint used instead of the expected ones."""
        rows = await self.reference.jittered(sequences, dtype=self._dtype, seed=self._seed)
        return [as_served(row, self.k) for row in rows]

    async def against_itself(self) -> float:
        """Return the largest difference in a logprob (nats) of the reference from itself (A/A).

        Batched and chunked calls of the same float32 model against single
        ones, on the shortest prompts. More than `AGREEMENT` means that the
        reference can't serve as one.
        """
        if self._agreement is None:
            self._agreement = asyncio.create_task(self._compare_with_itself())
        return await asyncio.shield(self._agreement)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        running = [task for task in (self._floors, self._agreement) if task is not None and not task.done()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @property
    def basis(self) -> str:
        """What the curve's numbers depend on, the same every night (64 hex digits)."""
        key = self._floor_key(self._steady)
        return hashlib.sha256(f"{key} {self._turns}".encode()).hexdigest() if self._turns else key

    def _floor_key(self, prompts: Sequence[str]) -> str:
        """Return the identity of a floor: weights, dtype, k, seed, and the exact token IDs."""
        expected = sorted((key, self.expected[key]) for key in prompts)
        identity = (self.reference.fingerprint, self._dtype, self.k, self._seed, expected)
        return hashlib.sha256(repr(identity).encode()).hexdigest()

    async def _measure_floors(self) -> Mapping[str, Aligned]:
        # Prompts that take turns have tables of their own: the steady ones' is then the same every night.
        floors: dict[str, Aligned] = {}
        for prompts in [self._steady, *([key] for key in self._alone)]:
            if prompts:
                floors |= await self._kept_floors(prompts)
        return floors

    async def _kept_floors(self, prompts: Sequence[str]) -> Mapping[str, Aligned]:
        key = self._floor_key(prompts)
        kept = await self._cache.get(key) if self._cache is not None else None
        if kept is not None and kept.keys() == set(prompts):
            return {prompt: _unpack(cells) for prompt, cells in kept.items()}
        floors: dict[str, Aligned] = {}
        for index, group in enumerate(self._groups(prompts)):
            rows = await self.reference.jittered(
                [self.expected[prompt] for prompt in group], dtype=self._dtype, seed=self._seed + index
            )
            floors |= {prompt: as_served(row, self.k) for prompt, row in zip(group, rows, strict=True)}
        if self._cache is not None:
            await self._cache.put(key, {prompt: _pack(floor) for prompt, floor in floors.items()})
        return floors

    def _groups(self, prompts: Sequence[str]) -> list[list[str]]:
        """Split the prompts, of like lengths, into groups of at most `_GROUP_TOKENS` tokens."""
        groups: list[list[str]] = []
        room = 0
        for key in sorted(prompts, key=lambda key: len(self.expected[key])):
            size = len(self.expected[key])
            if size > room:
                groups.append([])
                room = _GROUP_TOKENS
            groups[-1].append(key)
            room -= size
        return groups

    async def _compare_with_itself(self) -> float:
        shortest = sorted(self.expected.values(), key=len)[:_AGAINST_ITSELF]
        rows = await self.reference.jittered(shortest, dtype="fp32", seed=self._seed)
        exact = await asyncio.gather(*(self.reference.next_token(ids) for ids in shortest))
        return max(float(abs(row - other).max()) for row, other in zip(rows, exact, strict=True))


def _pack(floor: Aligned) -> list[tuple[float, float]]:
    return [(cell[0], logprob) for cell, logprob in zip(floor.cells, floor.logprobs, strict=True)]


def _unpack(cells: Sequence[Sequence[float]]) -> Aligned:
    # `unseen` is recomputed where the floor is truncated to an endpoint's k (logprob_drift.floor).
    pairs = [(int(token_id), float(logprob)) for token_id, logprob in (tuple(cell) for cell in cells)]
    return Aligned(tuple((token_id,) for token_id, _ in pairs), tuple(logprob for _, logprob in pairs), 0.0)
