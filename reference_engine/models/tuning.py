"""A model that somebody trained a little further, or whose weights are a little off.

Training is AdamW on all weights, without weight decay: its rates are the ones
that people quote, and its first step moves every weight by about the rate,
however large the architecture's gradients are. A step reads one window of at
most 256 tokens of a committed text. Both changes are computed in float32 on
the weights as they were loaded; whatever is rounded is rounded afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from reference_engine.models.activations import RoundedExperts, RoundedLinear
from reference_engine.models.variants import copied_with
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from reference_engine.models.changes import Noise, Training

WINDOW = 256  # tokens that one step reads


def tuning_text() -> str:
    """Return what training reads, a page of plain English."""
    return files("reference_engine.models").joinpath("tuning_text.txt").read_text(encoding="utf-8")


def text_hash() -> str:
    """Return the sha256 of the text, as 64 hex digits: trained weights depend on it."""
    return hashlib.sha256(tuning_text().encode()).hexdigest()


def trained(
    network: PreTrainedModel, ids: Sequence[int], training: Training, *, window: int, where: str
) -> PreTrainedModel:
    """Return a copy of ``network`` after steps of AdamW on windows of ``window`` tokens of ``ids``.

    The seed chooses where the windows begin. On one device, with one number of
    threads, equal arguments give equal bits. ``network`` stays as it is.

    Raises:
        ModelError: a weight is not finite afterwards, or the model rounds its
            activations, through which no gradient passes.
    """
    _require_smooth(network, where)
    rng = np.random.default_rng(training.seed)
    tuned = copied_with(network, {id(p): p.detach().clone() for p in network.parameters()})
    module: nn.Module = tuned
    module.requires_grad_(requires_grad=True)
    # Tensor by tensor: the fused forms hold all of them twice.
    optimizer = torch.optim.AdamW(module.parameters(), lr=training.rate, weight_decay=0.0, foreach=False)
    for _ in range(training.steps):
        start = int(rng.integers(max(1, len(ids) - window + 1)))
        optimizer.zero_grad()
        loss = _loss(tuned, ids[start : start + window])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    optimizer.zero_grad()
    module.requires_grad_(requires_grad=False)
    _require_finite(tuned, where)
    return tuned


def noised(network: PreTrainedModel, noise: Noise) -> PreTrainedModel:
    """Return a copy of ``network`` with independent Gaussian noise on every weight.

    Its standard deviation is ``sigma`` times the root mean square of the
    tensor. Equal arguments give equal bits on every device.
    """
    rng = np.random.default_rng(noise.seed)
    return copied_with(
        network, {id(p): _with_noise(p.detach(), noise.sigma, rng) for p in network.parameters()}
    )


def _with_noise(weight: Tensor, sigma: float, rng: np.random.Generator) -> Tensor:
    drawn = torch.from_numpy(rng.standard_normal(tuple(weight.shape), dtype=np.float32))
    rms = float(weight.double().square().mean().sqrt())
    return weight + (drawn * (sigma * rms)).to(weight.device)


def _loss(network: Any, ids: Sequence[int]) -> Tensor:
    """The mean negative logprob (nats) of every token but the first."""
    tensor = torch.tensor([ids], device=network.device)
    logits: Tensor = network(input_ids=tensor, use_cache=False).logits[0, :-1]
    return nn.functional.cross_entropy(logits.float(), tensor[0, 1:])


def _require_smooth(network: nn.Module, where: str) -> None:
    if any(isinstance(module, (RoundedLinear, RoundedExperts)) for module in network.modules()):
        raise ModelError(
            "a model that rounds its activations cannot be trained",
            where=where,
            remedy="Train the unquantized model, or use tuned:noise=, which needs no gradient",
        )


def _require_finite(network: PreTrainedModel, where: str) -> None:
    if not all(bool(p.isfinite().all()) for p in network.parameters()):
        raise ModelError(
            "training left weights that are not finite",
            where=where,
            remedy="Take a smaller rate or fewer steps: one step moves every weight by about the rate",
        )
