"""Power against tokens spent, a panel a fault."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OURS = "ringtrue, one night"


def draw(found: Mapping[str, list[dict[str, Any]]], path: Path) -> None:
    """Write the picture; sections that were not run are not in it."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and only here

    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for row in found.get("night", []):
        points = [(int(tokens), share) for tokens, share in row["power"].items()]
        if points:
            curves.setdefault(row["fault"], {})[OURS] = points
    for row in found.get("rivals", []):
        curves.setdefault(row["fault"], {}).setdefault(row["method"], []).append(
            (row["tokens"], row["power"])
        )
    if not curves:
        return
    columns = 4
    rows = math.ceil(len(curves) / columns)
    figure = Figure(figsize=(4 * columns, 3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for place, (fault, methods) in zip(axes.flat, curves.items(), strict=False):
        for method, points in methods.items():
            tokens, power = zip(*sorted(points), strict=True)
            place.plot(tokens, power, marker="o", label=method)
        place.set_title(fault, fontsize=9)
        place.set_xscale("log")
        place.set_ylim(-0.05, 1.05)
    for place in axes.flat[len(curves) :]:
        place.set_axis_off()
    for place in axes.flat[max(0, len(curves) - columns) : len(curves)]:
        place.set_xlabel("tokens of one test")
    for row in axes:
        row[0].set_ylabel("share of tests that fire")
    handles = {
        text: line
        for place in axes.flat
        for line, text in zip(*place.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
    figure.savefig(path, dpi=120)
