"""Which passes answer which question, and their divergences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from reference_engine.divergence.tiles import LogitRows, tiled_kl
from reference_engine.layers.crossing import Crossing, differing_modules
from reference_engine.layers.hybrid import converted, dtype_of, path_of
from reference_engine.models.loading import LoadedModel

HEAD = "head"
CACHE = "key-value cache"

_TOGETHER = 16  # passes whose final states are held until their divergences are computed


@dataclass(frozen=True, slots=True)
class Place:
    """Where the candidate enters: a layer, a module inside one, or (``layer`` None) a module outside."""

    kind: str  # swap, cum, module, outside, control or full
    layer: int | None = None
    module: str | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """One question: final states from ``run``, read by the head of ``reader``; ``cost`` counts layers."""

    place: Place
    run: Callable[[Crossing], Tensor]
    reader: LoadedModel
    cost: int


def layer_passes(reference: LoadedModel, candidate: LoadedModel) -> list[Pass]:
    """Return the passes for every layer, for what lies outside, for the whole, and the controls."""
    count = len(reference.layers)
    passes = [
        Pass(Place("swap", layer), partial(Crossing.swapped, layer=layer), reference, count - layer)
        for layer in range(count)
    ]
    passes += [
        Pass(Place("cum", layer), partial(Crossing.cumulative, layer=layer), reference, count - layer - 1)
        for layer in range(count)
    ]
    passes += [
        Pass(Place("control", layer), partial(Crossing.control, layer=layer), reference, count - layer)
        for layer in sorted({0, count // 2, count - 1})
    ]
    passes += [
        Pass(Place("outside", None, path), partial(Crossing.swapped_outside, path=path), reference, count)
        for path in _outside_layers(reference, candidate)
    ]
    if _head_differs(reference, candidate):
        passes.append(Pass(Place("outside", None, HEAD), lambda crossing: crossing.truth.final, candidate, 0))
    return [*passes, Pass(Place("full"), lambda crossing: crossing.other.final, candidate, 0)]


def module_passes(reference: LoadedModel, candidate: LoadedModel, layer: int) -> list[Pass]:
    """Return the passes for the modules of one layer that differ, and for its key-value cache."""
    cost = len(reference.layers) - layer
    paths = differing_modules(reference.layers[layer], candidate.layers[layer])
    passes = [
        Pass(
            Place("module", layer, path),
            partial(Crossing.swapped_module, layer=layer, path=path),
            reference,
            cost,
        )
        for path in paths
    ]
    if candidate.name.cache(layer) is not None:
        run = partial(Crossing.rounded_cache, layer=layer)
        passes.append(Pass(Place("module", layer, CACHE), run, reference, cost))
    return passes


def divergences(
    crossing: Crossing, passes: Sequence[Pass], advance: Callable[[int], None]
) -> Iterator[tuple[Place, NDArray[np.float64]]]:
    """Yield the KL from the reference (nats, [positions]) that each pass shows; ``advance`` is told its cost.

    Raises:
        MeasureError: a pass gives NaN or Inf, or memory runs out.
    """
    truth = _logits(crossing.reference, crossing.truth.final)
    for start in range(0, len(passes), _TOGETHER):
        group = passes[start : start + _TOGETHER]
        finals = []
        for one in group:
            finals.append(_logits(one.reader, one.run(crossing)))
            advance(one.cost)
        rows = crossing.ids.shape[1]
        yield from zip(
            (one.place for one in group),
            tiled_kl(truth, finals, rows, vocabulary=crossing.reference.vocabulary_size),
            strict=True,
        )


def _logits(model: LoadedModel, final: Tensor) -> LogitRows:
    states = converted(final, dtype_of(_head(model)) or final.dtype)
    return lambda start, stop: model.head(states[:, start:stop])[0]


def _outside_layers(reference: LoadedModel, candidate: LoadedModel) -> list[str]:
    body: nn.Module = reference.network.base_model
    layers = path_of(reference.layers, body)
    return [
        path
        for path in differing_modules(body, candidate.network.base_model)
        if not f"{path}.".startswith(f"{layers}.")
    ]


def _head_differs(reference: LoadedModel, candidate: LoadedModel) -> bool:
    return bool(differing_modules(_head(reference), _head(candidate)))


def _head(model: LoadedModel) -> nn.Module:
    network: Any = model.network
    return nn.ModuleDict({HEAD: network.get_output_embeddings()})
