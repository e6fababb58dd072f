"""The reference's side of the border inputs: which they are, and how often an honest answer leaves them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from evals.truth import FloorCache, FloorTable
from logprob_drift.token_only.border_inputs import violation_rate
from logprob_drift.token_only.border_night import LEVEL
from probes.border_search import BorderInput, border_candidates, search
from probes.context_curve import CurvePrompt
from ringtrue.endpoint import Reference

_REPLAYS = "replays"


@dataclass(frozen=True, slots=True)
class BorderPlan:
    """The settings of the border inputs.

    ``inputs`` are searched for among ``candidates`` prompts, replayed
    ``replays`` times by the reference, and asked up to ``asks`` times a night;
    a night is CHANGED when the evidence reaches ``level``.
    """

    candidates: int = 500
    inputs: int = 20
    replays: int = 15
    asks: int = 3
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class Borders:
    """The border inputs, and the ``rate`` below which honest answers to them leave the support."""

    inputs: tuple[BorderInput, ...]
    rate: float


class BorderTruth:
    """Finds the inputs and replays them, once, whoever asks and however many at the same time.

    In a replay the reference answers every input in the floor's dtype, with
    batches drawn at random.
    """

    def __init__(
        self,
        reference: Reference,
        plan: BorderPlan,
        *,
        seed: int,
        floor_dtype: str,
        cache: FloorCache | None = None,
    ) -> None:
        """Cut the candidates; nothing is computed yet.

        Raises:
            ConfigError: they do not fit the model's context, or the texts hold too few.
        """
        self._reference = reference
        self._seed = seed
        self._dtype = floor_dtype
        self._plan = plan
        self._cache = cache
        self.candidates: tuple[CurvePrompt, ...] = border_candidates(reference, plan.candidates, seed=seed)
        self.expected = {prompt.id: reference.render(prompt.messages) for prompt in self.candidates}
        self._found: asyncio.Task[Borders] | None = None

    @property
    def key(self) -> str:
        """A hash of the reference, the candidates and the settings: 64 hex digits."""
        settings = (self._seed, self._dtype, self._plan.inputs, self._plan.replays)
        depends = ("border", self._reference.fingerprint, settings, sorted(self.expected.items()))
        return hashlib.sha256(repr(depends).encode()).hexdigest()

    async def borders(self) -> Borders | None:
        """Return the inputs with their rate, ``None`` where no candidate is near a tie."""
        if self._found is None or _failed(self._found):
            self._found = asyncio.create_task(self._find())
        found = await asyncio.shield(self._found)
        return found if found.inputs else None

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        if self._found is not None and not self._found.done():
            self._found.cancel()
            await asyncio.gather(self._found, return_exceptions=True)

    async def _find(self) -> Borders:
        kept = await self._cache.get(self.key) if self._cache is not None else None
        if kept is not None:
            return self._unpack(kept)
        inputs = await search(self._reference, self.candidates, inputs=self._plan.inputs)
        if not inputs:
            return Borders((), 1.0)
        violating, asked = await self._replay(inputs)
        if self._cache is not None:
            await self._cache.put(self.key, _pack(inputs, violating, asked))
        return Borders(inputs, violation_rate(violating, asked))

    async def _replay(self, inputs: Sequence[BorderInput]) -> tuple[int, int]:
        """Return how many honest answers left the support, and how many there were."""
        violating = 0
        for turn in range(self._plan.replays):
            rows = await self._reference.jittered(
                [one.ids for one in inputs], dtype=self._dtype, seed=self._seed + turn
            )
            violating += sum(
                int(row.argmax()) not in one.tokens for row, one in zip(rows, inputs, strict=True)
            )
        return violating, self._plan.replays * len(inputs)

    def _unpack(self, table: FloorTable) -> Borders:
        (violating, asked) = table[_REPLAYS][0]
        inputs = []
        for prompt in self.candidates:
            if prompt.id in table:
                tokens = tuple(int(token) for token, _ in table[prompt.id])
                inputs.append(
                    BorderInput(
                        prompt.id,
                        prompt.messages,
                        self.expected[prompt.id],
                        tokens,
                        tuple(float(chance) for _, chance in table[prompt.id]),
                        tuple(self._reference.decode([token]).strip() for token in tokens),
                    )
                )
        return Borders(tuple(inputs), violation_rate(int(violating), int(asked)))


def _pack(inputs: Sequence[BorderInput], violating: int, asked: int) -> FloorTable:
    table = {one.id: list(zip(one.tokens, one.probabilities, strict=True)) for one in inputs}
    return {**table, _REPLAYS: [(violating, asked)]}


def _failed(task: asyncio.Task[Borders]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
