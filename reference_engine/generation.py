"""One answer in the making, a token a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_engine.models.loading import LoadedModel
from reference_engine.sampling import Sampler
from reference_engine.scoring import PromptScores, hidden_states, last_logprobs, new_cache, prompt_scores


@dataclass(frozen=True, slots=True)
class GenerationSpec:
    """How to continue a prompt.

    ``top_k`` and ``skip_first`` limit what is drawn, ``end_bias`` (nats) moves
    how soon the ``stop_ids`` are (``sampling.Sampler``).
    ``top`` is how many alternatives each step lists. ``prompt_top`` asks for
    the scores of the prompt with that many alternatives; ``None`` does without.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = None
    skip_first: bool = False
    end_bias: float = 0.0
    seed: int = 0
    top: int = 0
    prompt_top: int | None = None
    stop_ids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Step:
    """One generated token.

    ``logprob`` and ``top`` (token ID, logprob; best first) are of the model's
    own distribution, before temperature, top_k and top_p. ``finish_reason`` is set on
    the last step, ``prompt`` on the first if it was asked for.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()
    finish_reason: str | None = None
    prompt: PromptScores | None = None


class Generation:
    """A prompt, its key-value cache, and the tokens drawn so far. Lives on the engine thread."""

    def __init__(
        self,
        model: LoadedModel,
        ids: Sequence[int],
        spec: GenerationSpec,
        *,
        corrupt_beyond: int | None = None,
    ) -> None:
        self._model = model
        self._ids = ids
        self._spec = spec
        self._beyond = (corrupt_beyond,)
        self._cache = new_cache(model)
        self._drawer = StepDrawer(spec)
        self._pending: Sequence[int] = ids
        self.finished = False

    @torch.inference_mode()
    def step(self) -> Step:
        """Run the pending tokens (first the prompt, then the token drawn last) and draw the next one."""
        first = self._pending is self._ids
        ids = torch.tensor([self._pending], device=self._model.device)
        hidden = hidden_states(self._model, ids, beyond=self._beyond, cache=self._cache)
        scores = None
        if first and self._spec.prompt_top is not None:
            scores = prompt_scores(self._model, self._ids, hidden, self._spec.prompt_top)
        step = self._drawer.draw(last_logprobs(self._model, hidden)[0], prompt=scores)
        self._pending = (step.token_id,)
        self.finished = step.finish_reason is not None
        return step


class StepDrawer:
    """Turns one row of logprobs after another into steps, and knows when to finish."""

    def __init__(self, spec: GenerationSpec) -> None:
        self._spec = spec
        self._sampler = Sampler(
            spec.temperature,
            spec.top_p,
            spec.seed,
            top_k=spec.top_k,
            skip_first=spec.skip_first,
            ending=spec.stop_ids,
            end_bias=spec.end_bias,
        )
        self._drawn = 0

    def draw(self, row: Tensor, *, prompt: PromptScores | None = None) -> Step:
        """Draw the next token from ``row`` [vocabulary]."""
        token_id = self._sampler.draw(row.cpu().numpy())
        self._drawn += 1
        reason = "length" if self._drawn >= self._spec.max_tokens else None
        if token_id in self._spec.stop_ids:
            reason = "stop"
        best = row.topk(self._spec.top)
        top = tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
        return Step(token_id, float(row[token_id]), top, reason, prompt)
