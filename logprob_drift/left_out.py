"""The words about answers that a statement does not rest on."""

from __future__ import annotations

from logprob_drift.findings import Basis


def left_out(basis: Basis) -> str:
    """Return the end of a sentence about withheld and unusable answers, empty where there are none."""
    words = ""
    if basis.withheld:
        words += f"; {basis.withheld} answers withheld, their token IDs differ"
    if basis.unusable:
        kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in basis.unusable.items())
        words += f"; answers left out: {kinds}"
    if basis.counted:
        words += "; token IDs taken as equal because their counts are"
    return words
