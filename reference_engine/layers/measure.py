"""KL by layer and by module (docs/methods.md, "Divergence by layer")."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from reference_engine.layers.crossing import Crossing
from reference_engine.layers.drift import Drift
from reference_engine.layers.passes import Pass, Place, divergences, layer_passes, module_passes
from reference_engine.layers.result import LayerDivergence, LayerRow, ModuleRow
from reference_engine.models.loading import LoadedModel
from ringtrue.errors import MeasureError, UsageError

Advance = Callable[[int], None]
"""Told how many layers were computed."""


class LayerMeasurement:
    """Where ``candidate`` loses what ``reference`` knows, over all positions of ``sequences``.

    The models must be comparable (``models.comparable``). For the engine
    thread. It holds the outputs of all layers for one sequence, twice.
    """

    def __init__(
        self,
        reference: LoadedModel,
        candidate: LoadedModel,
        sequences: Sequence[Sequence[int]],
        *,
        modules_in: int = 3,
    ) -> None:
        """Plan the passes. Modules are looked at in the ``modules_in`` layers with the largest ``swap_kl``.

        Raises:
            UsageError: there is no sequence.
        """
        if not sequences:
            raise UsageError("there are no token sequences to measure on")
        self.reference, self.candidate, self.sequences = reference, candidate, sequences
        self._modules_in = modules_in
        self._passes = layer_passes(reference, candidate)

    @property
    def cost(self) -> int:
        """The layers that will be computed, modules apart: the unit of progress."""
        recording = 2 * len(self.reference.layers)
        return len(self.sequences) * (recording + sum(one.cost for one in self._passes))

    @torch.inference_mode()
    def run(self, advance: Advance = lambda _: None) -> LayerDivergence:
        """Measure.

        Raises:
            MeasureError: a value is NaN or infinite, memory ran out, or a pass
                in which nothing was exchanged differs from the reference's
                own, so that this architecture cannot be cut at its layers.
        """
        drifts = [Drift() for _ in self.reference.layers]
        means = self._means(self._passes, drifts, advance)
        self._require_control(control := max(kl for place, kl in means.items() if place.kind == "control"))
        rows = tuple(
            LayerRow(
                layer=layer,
                swap_kl=means[Place("swap", layer)],
                cum_kl=means[Place("cum", layer)],
                sqnr_db=drift.sqnr_db,
                cosine=drift.cosine,
                error=drift.error,
            )
            for layer, drift in enumerate(drifts)
        )
        worst = sorted((row for row in rows if row.swap_kl > 0), key=lambda row: -row.swap_kl)
        inside = [
            one
            for row in worst[: self._modules_in]
            for one in module_passes(self.reference, self.candidate, row.layer)
        ]
        return LayerDivergence(
            reference=str(self.reference.name),
            candidate=str(self.candidate.name),
            layers=rows,
            outside=_module_rows(means, "outside"),
            modules=_module_rows(self._means(inside, [], lambda _: None), "module"),
            full_kl=means[Place("full")],
            control=control,
            sequences=len(self.sequences),
            positions=sum(map(len, self.sequences)),
        )

    def _means(self, passes: Sequence[Pass], drifts: Sequence[Drift], advance: Advance) -> dict[Place, float]:
        """Return each pass's mean KL over all positions, and add the states to ``drifts``, one a layer."""
        found: dict[Place, list[NDArray[np.float64]]] = defaultdict(list)
        for ids in self.sequences if passes else ():
            tensor = torch.tensor([list(ids)], device=self.reference.device)
            crossing = Crossing(self.reference, self.candidate, tensor)
            advance(2 * len(self.reference.layers))
            for layer, drift in enumerate(drifts):
                drift.add(crossing.truth.states(layer), crossing.other.states(layer))
            for place, kl in divergences(crossing, passes, advance):
                found[place].append(kl)
        return {place: float(np.concatenate(parts).mean()) for place, parts in found.items()}

    def _require_control(self, control: float) -> None:
        if control != 0:
            raise MeasureError(
                f"a pass that exchanges nothing diverges by {control:.2g} nats, so layers share state",
                where=type(self.reference.network).__name__,
                remedy="This architecture can't be measured by layer; ringtrue compare measures it whole",
            )


def _module_rows(means: Mapping[Place, float], kind: str) -> tuple[ModuleRow, ...]:
    return tuple(
        ModuleRow(place.layer, place.module or "", kl) for place, kl in means.items() if place.kind == kind
    )
