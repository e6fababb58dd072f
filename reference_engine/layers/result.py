"""What is known of a candidate's loss, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One decoder layer, counted from 0. Divergences in nats, the mean over all positions.

    ``swap_kl`` is KL(P || P with only this layer the candidate's); ``cum_kl``
    that of the candidate up to this layer and the reference beyond it.
    ``sqnr_db``, ``cosine`` and ``error`` compare the states after this layer
    in the candidate's own pass with the reference's: they are cheap, and not
    in units of loss. ``sqnr_db`` is ``None`` where the states are equal.
    """

    layer: int
    swap_kl: float
    cum_kl: float
    sqnr_db: float | None
    cosine: float
    error: float


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One module, in decoder layer ``layer`` or, with ``None``, outside the layers; ``swap_kl`` in nats."""

    layer: int | None
    module: str
    swap_kl: float


@dataclass(frozen=True, slots=True)
class LayerDivergence:
    """The whole answer. Divergences in nats.

    ``outside`` holds what differs outside the layers (embedding, final norm,
    head), ``modules`` what differs inside the layers with the largest
    ``swap_kl``. ``control`` is the divergence of passes in which nothing was
    exchanged, 0 exactly.
    """

    reference: str
    candidate: str
    layers: tuple[LayerRow, ...]
    outside: tuple[ModuleRow, ...]
    modules: tuple[ModuleRow, ...]
    full_kl: float
    control: float
    sequences: int
    positions: int

    @property
    def additivity(self) -> float | None:
        """The sum of every ``swap_kl``, layers and outside, over ``full_kl``; ``None`` where that is 0.

        Near 1 the layers' shares explain the whole; far from it they act on one another.
        """
        if self.full_kl == 0:
            return None
        total = sum(row.swap_kl for row in self.layers) + sum(row.swap_kl for row in self.outside)
        return total / self.full_kl

    def beyond(self, budget: float) -> int | None:
        """Return the first layer whose ``cum_kl`` is above ``budget`` (nats), ``None`` if there is none."""
        return next((row.layer for row in self.layers if row.cum_kl > budget), None)
