"""The last look at scores before they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference_engine.baselines.plan import Block
from reference_engine.position_scores import PositionScores
from ringtrue.errors import MeasureError


def require_sound(scores: PositionScores, block: Block, *, k: int, hidden_size: int | None) -> None:
    """Make sure that ``scores`` are those of ``block`` and hold numbers.

    ``hidden_size`` is ``None`` where no states are wanted. A logprob of -inf
    among the top k is a number: the probability is zero.

    Raises:
        MeasureError: rows or columns are missing, or a value is NaN or infinite; the place is named.
    """
    first = max(block.start, 1)
    rows = block.stop - first
    _require_shapes(scores, rows, k, hidden_size)
    columns: dict[str, NDArray[Any] | None] = {
        "logprob": scores.logprobs,
        "tail mass": scores.tail_mass,
        "entropy": scores.entropy,
        "state": scores.states,
    }
    for name, values in columns.items():
        if values is not None and not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise MeasureError(f"the {name} at position {first + row} is not a number")
    broken = ~(scores.top_logprobs < np.inf)  # also where it is NaN
    if broken.any():
        row = int(np.argwhere(broken)[0, 0])
        raise MeasureError(f"a top logprob at position {first + row} is not a number")


def _require_shapes(scores: PositionScores, rows: int, k: int, hidden_size: int | None) -> None:
    due = {
        "logprobs": (rows,),
        "ranks": (rows,),
        "top_ids": (rows, k),
        "top_logprobs": (rows, k),
        "tail_mass": (rows,),
    }
    if scores.entropy is not None:
        due["entropy"] = (rows,)
    if hidden_size is not None:
        due["states"] = (rows, hidden_size)
    for name, shape in due.items():
        found = getattr(scores, name)
        if found is None or found.shape != shape:
            raise MeasureError(
                f"the source gave {name} of shape {None if found is None else found.shape}, {shape} is due",
            )
