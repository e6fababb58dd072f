"""Key-value caches that hold rounded keys and values.

Keys and values are rounded as they are written, and every token reads what is
in the cache, itself included: what an engine's decode sees, and its prefill
too where it attends through the cache. ``kv-fp8`` is the plain cast to float8
e4m3 with saturation, the scale of 1 that engines take unless the checkpoint
brings others; ``kv-int8`` has a scale a token and head, absmax / 127.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from transformers import DynamicCache

from reference_engine.models.rounding import round_rows_to_int8, to_float8


class RoundedCache(DynamicCache):
    """A dynamic cache that rounds what some layers write."""

    def __init__(self, config: Any, roundings: Mapping[int, Callable[[Tensor], Tensor]]) -> None:
        super().__init__(config=config)
        self._roundings = roundings

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append rounded keys and values [batch, heads, tokens, channels], and return all that are held."""
        rounding = self._roundings.get(layer_idx)
        if rounding is not None:
            key_states, value_states = rounding(key_states), rounding(value_states)
        return super().update(key_states, value_states, layer_idx, *args, **kwargs)


def new_cache(config: Any, kinds: Mapping[int, str]) -> DynamicCache:
    """Return an empty cache that rounds the keys and values of the layers in ``kinds``.

    The kinds are those of ``kinds.CACHES``. Without any, it is transformers' own.
    """
    if not kinds:
        return DynamicCache(config=config)
    return RoundedCache(config, {layer: _ROUNDINGS[kind] for layer, kind in kinds.items()})


def _round_to_float8(values: Tensor) -> Tensor:
    return to_float8(values.float()).to(values.dtype)


_ROUNDINGS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "kv-fp8": _round_to_float8,
    "kv-int8": round_rows_to_int8,
}
