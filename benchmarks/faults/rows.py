"""Logprob rows and tokens of a planted fault, as requests in batches of their own would get them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from faults.planted import BASE, Fault
from numpy.typing import NDArray

from reference_engine.engine import Engine
from reference_engine.jitter import plan_batches
from reference_engine.models.loading import LoadedModel

Values = NDArray[np.float64]
Tokens = NDArray[np.int64]
_BATCH = 128  # sequences that are decoded together


@dataclass(frozen=True, slots=True)
class Served:
    """A fault with the weights it serves and those that its healthy sessions get."""

    fault: Fault
    model: LoadedModel
    healthy: LoadedModel

    @classmethod
    def load(cls, engine: Engine, fault: Fault) -> Served:
        """Load both models; takes seconds the first time."""
        return cls(fault, engine.load(fault.variant), engine.load(f"{BASE}@bf16"))

    def rows(
        self, engine: Engine, sequences: Sequence[Sequence[int]], rng: np.random.Generator
    ) -> list[Values]:
        """Return a row [vocabulary] (nats) a sequence, each a request of its own session.

        Batches and prefill chunks are drawn from ``rng``; so is who meets the
        fault, where it has a share.
        """
        meets = rng.random(len(sequences)) < self.fault.faults.share
        found: dict[int, Values] = {}
        for model, mine in ((self.model, np.flatnonzero(meets)), (self.healthy, np.flatnonzero(~meets))):
            corrupt = self.fault.faults.corrupt_beyond if model is self.model else None
            batches = plan_batches([len(sequences[i]) for i in mine], rng, engine.limits) if mine.size else ()
            for batch in batches:
                chosen = [int(mine[i]) for i in batch.members]
                if corrupt is not None:
                    jobs = [engine.start_score(model, sequences[i], corrupt_beyond=corrupt) for i in chosen]
                    scored = [job.result() for job in jobs]
                else:
                    scored = engine.start_batch(model, [sequences[i] for i in chosen], batch.splits).result()
                found |= {i: row.astype(np.float64) for i, row in zip(chosen, scored, strict=True)}
        return [found[i] for i in range(len(sequences))]

    def tokens(
        self,
        engine: Engine,
        prompts: Sequence[Sequence[int]],
        steps: int,
        rng: np.random.Generator,
        *,
        temperature: float,
    ) -> Tokens:
        """Return what is generated after each prompt, [prompts, steps]; an end-of-text token ends nothing."""
        meets = rng.random(len(prompts)) < self.fault.faults.share
        found = np.zeros((len(prompts), steps), dtype=np.int64)
        for model, mine in ((self.model, np.flatnonzero(meets)), (self.healthy, np.flatnonzero(~meets))):
            for start in range(0, mine.size, _BATCH):
                some = mine[start : start + _BATCH]
                found[some] = engine.call(
                    lambda m=model, s=some: self._decode(m, [prompts[i] for i in s], steps, rng, temperature)
                ).result()
        return found

    @torch.inference_mode()
    def _decode(
        self,
        model: LoadedModel,
        prompts: Sequence[Sequence[int]],
        steps: int,
        rng: np.random.Generator,
        temperature: float,
    ) -> Tokens:
        """Decode one left-padded batch."""
        width = max(len(prompt) for prompt in prompts)
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        generated = np.zeros((len(prompts), steps), dtype=np.int64)
        cache = model.new_cache()
        for step in range(steps):
            positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            out = model.network(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                cache=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            logits = out.logits[:, -1].double().numpy()
            generated[:, step] = [self._draw(row, rng, temperature) for row in logits]
            ids = torch.from_numpy(generated[:, step : step + 1])
            mask = torch.cat([mask, torch.ones((len(prompts), 1), dtype=mask.dtype)], dim=1)
        return generated

    def _draw(self, logits: Values, rng: np.random.Generator, temperature: float) -> int:
        if temperature == 0:
            return int(logits.argmax())
        if self.fault.faults.drop_top_token:
            logits = logits.copy()
            logits[logits.argmax()] = -np.inf
        scaled = logits / (temperature * self.fault.faults.temperature_factor)
        weights = np.exp(scaled - scaled.max())
        chances = np.cumsum(weights)
        return int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
