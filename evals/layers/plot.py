"""Divergence by layer as a picture."""

from __future__ import annotations

import os
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reference_engine.layers.result import LayerDivergence
from ringtrue.errors import UsageError


def require_writable(file: Path) -> None:
    """Check before the long work that the picture can be written.

    Raises:
        UsageError: its folder is not there or takes no file, or the name does not end in .png.
    """
    if file.suffix.lower() != ".png":
        raise UsageError("the picture is a PNG", where=str(file), remedy="Name a file that ends in .png")
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise UsageError("no file can be written there", where=str(file), remedy="Name an existing folder")


def draw_layers(found: LayerDivergence, budget: float, file: Path) -> None:
    """Write a PNG: a bar a layer for its own share, above it the candidate's loss up to each layer."""
    picture = Figure(figsize=(9, 6), layout="constrained")
    above, below = picture.subplots(2, 1, sharex=True)
    places = [row.layer for row in found.layers]
    above.plot(places, [row.cum_kl for row in found.layers], marker="o", markersize=3, color="tab:red")
    above.axhline(budget, color="grey", linestyle="--", linewidth=1, label=f"budget {budget:g} nats")
    above.axhline(found.full_kl, color="black", linestyle=":", linewidth=1, label="the whole candidate")
    above.set_ylabel("cumulative KL, nats")
    above.legend(loc="best", frameon=False)
    worst = {row.layer for row in found.modules}
    colours = ["tab:orange" if row.layer in worst else "tab:blue" for row in found.layers]
    below.bar(places, [row.swap_kl for row in found.layers], color=colours)
    below.set_ylabel("KL of the layer alone, nats")
    below.set_xlabel("decoder layer")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    picture.suptitle(f"{found.candidate} against {found.reference}")
    picture.savefig(file, dpi=150, metadata={"Software": "ringtrue"})
