"""How far honest sessions lie from the reference: computed once and kept between nights."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evals.preflight import LADDER
from evals.truth import FloorCache, FloorTable
from logprob_drift.alarms.session_scores import TINY
from logprob_drift.floor import as_served
from logprob_drift.truncated import truncated_kl
from probes.context_curve import CurvePrompt
from ringtrue.endpoint import LogprobRow, Reference
from ringtrue.stats import Values

_PILOT = 12  # honest answers to each candidate, by which the prompts are chosen
_GROUP_TOKENS = 4_096  # handed to the engine at once: bounds how long others wait


@dataclass(frozen=True, slots=True)
class Honest:
    """The chosen prompts, and what honest sessions show on them.

    ``divergences`` [sessions, prompts, ks] in nats, truncated to each of ``ks``.
    """

    prompts: tuple[CurvePrompt, ...]
    divergences: Values
    ks: tuple[int, ...]

    def at(self, k: int) -> Values:
        """Return the divergences [sessions, prompts] truncated to ``k``, one of ``ks``."""
        chosen: Values = self.divergences[:, :, self.ks.index(k)]
        return chosen


class HonestSessions:
    """Chooses the prompts of a fingerprint and draws honest sessions on them.

    Each group of sessions has batches of its own. Of ``candidates`` the
    ``count`` whose honest log divergence spreads least are chosen: there a
    faulty answer stands out most. Nothing observed at an endpoint goes in.
    """

    def __init__(
        self,
        reference: Reference,
        candidates: Sequence[CurvePrompt],
        *,
        count: int,
        sessions: int,
        dtype: str,
        k: int,
        seed: int,
        cache: FloorCache | None,
    ) -> None:
        self._reference = reference
        self._ids = {prompt.id: reference.render(prompt.messages) for prompt in candidates}
        self._candidates = tuple(candidates)
        self._count = count
        self._sessions = sessions
        self._dtype = dtype
        self._seed = seed
        self._cache = cache
        self.ks = (k, *(step for step in LADDER if step < k))
        self._task: asyncio.Task[Honest] | None = None

    @property
    def key(self) -> str:
        """The identity of the draw: 64 hex digits over weights, prompts and settings."""
        settings = (self._count, self._sessions, self._dtype, self._seed, self.ks, _PILOT)
        identity = ("sessions", self._reference.fingerprint, settings, sorted(self._ids.items()))
        return hashlib.sha256(repr(identity).encode()).hexdigest()

    async def drawn(self) -> Honest:
        """Return the honest sessions, drawn when first asked for and only once."""
        if self._task is None:
            self._task = asyncio.create_task(self._load_or_draw())
        return await asyncio.shield(self._task)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _load_or_draw(self) -> Honest:
        kept = await self._cache.get(self.key) if self._cache is not None else None
        honest = self._unpack(kept) if kept is not None else None
        if honest is not None:
            return honest
        prompts = await self._choose()
        divergences = await self._draw(prompts, self._sessions, self._seed + 1)
        if self._cache is not None:
            await self._cache.put(self.key, {p.id: divergences[:, i].tolist() for i, p in enumerate(prompts)})
        return Honest(prompts, divergences, self.ks)

    def _unpack(self, table: FloorTable) -> Honest | None:
        prompts = tuple(prompt for prompt in self._candidates if prompt.id in table)
        if len(prompts) != self._count or len(table) != self._count:
            return None
        divergences = np.array([table[prompt.id] for prompt in prompts]).swapaxes(0, 1)
        return Honest(prompts, divergences, self.ks)

    async def _choose(self) -> tuple[CurvePrompt, ...]:
        if len(self._candidates) <= self._count:
            return self._candidates
        pilot = (await self._draw(self._candidates, _PILOT, self._seed))[:, :, 0]
        steadiest = np.argsort(np.log(pilot + TINY).std(axis=0), kind="stable")[: self._count]
        return tuple(self._candidates[i] for i in sorted(steadiest.tolist()))

    async def _draw(self, prompts: Sequence[CurvePrompt], sessions: int, seed: int) -> Values:
        ids = [self._ids[prompt.id] for prompt in prompts]
        exact = await asyncio.gather(*(self._reference.next_token(one) for one in ids))
        at_once = max(1, _GROUP_TOKENS // sum(map(len, ids)))
        drawn = []
        for group, start in enumerate(range(0, sessions, at_once)):
            size = min(at_once, sessions - start)
            rows = await self._reference.jittered(ids * size, dtype=self._dtype, seed=1_000 * seed + group)
            drawn.append(await asyncio.to_thread(_divergences, exact * size, rows, self.ks))
        return np.concatenate(drawn).reshape(sessions, len(prompts), len(self.ks))


def _divergences(exact: Sequence[LogprobRow], rows: Sequence[LogprobRow], ks: Sequence[int]) -> Values:
    """Return D [rows, ks] in nats of honest rows, each truncated to each k."""
    listed = [as_served(row, max(ks)) for row in rows]
    seen = np.array([one.logprobs for one in listed], dtype=np.float32)
    p = np.array(
        [row[[cell[0] for cell in one.cells]] for row, one in zip(exact, listed, strict=True)],
        dtype=np.float32,
    )
    return np.stack([truncated_kl(p[:, :k], seen[:, :k]) for k in ks], axis=1)
