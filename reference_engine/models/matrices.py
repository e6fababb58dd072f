"""Which weights of a network a server rounds: those that multiply activations in the decoder layers.

Linear layers, and the experts of a mixture, which are stacked in one parameter
[experts, out, in] (some architectures: [experts, in, out]). Routers stay exact,
as engines leave them: they are small, and a token sent to another expert is
lost altogether.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from ringtrue.errors import ModelError

_ROUTERS = frozenset({"gate", "router", "shared_expert_gate"})
_EXPERTS = ("gate_up_proj", "up_proj", "down_proj")
_LEAST_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight [..., out, in], or [..., in, out] where ``transposed``, and the module that it belongs to."""

    module: nn.Module
    weight: Tensor
    transposed: bool = False

    def rounded(self, rounding: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the weight after ``rounding``, which sees it as [..., out, in]."""
        weight = self.weight.detach()
        if not self.transposed:
            return rounding(weight)
        return rounding(weight.transpose(-1, -2).contiguous()).transpose(-1, -2).contiguous()


def layer_matrices(layer: nn.Module, hidden_size: int) -> list[Matrix]:
    """Return the matrices of one decoder layer, in the order of its modules.

    Raises:
        ModelError: stacked experts do not say which way they lie.
    """
    return list(_matrices(layer, hidden_size))


def require_matrices(layers: nn.ModuleList, hidden_size: int, where: str) -> None:
    """Check that nearly all weights of the layers are matrices that can be found and rounded.

    Raises:
        ModelError: they are not, so that a rounded variant would not be one.
    """
    held = sum(m.weight.numel() for layer in layers for m in layer_matrices(layer, hidden_size))
    share = held / sum(p.numel() for p in layers.parameters())
    if share < _LEAST_SHARE:
        raise ModelError(
            f"only {share:.0%} of the layers' weights are in linear layers or stacked experts, "
            "the rest cannot be rounded",
            where=where,
            remedy="Use a dtype or a cache variant for this architecture",
        )


def _matrices(layer: nn.Module, hidden_size: int) -> Iterator[Matrix]:
    for path, module in layer.named_modules():
        if not _ROUTERS.isdisjoint(path.split(".")):
            continue
        if isinstance(module, nn.Linear):
            yield Matrix(module, module.weight)
        elif isinstance(module, Conv1D):
            yield Matrix(module, module.weight, transposed=True)
        else:
            for name in _EXPERTS:
                weight = getattr(module, name, None)
                if isinstance(weight, nn.Parameter) and weight.dim() == 3:
                    yield Matrix(module, weight, _is_transposed(module, name, hidden_size))


def _is_transposed(experts: Any, name: str, hidden_size: int) -> bool:
    declared = getattr(experts, "is_transposed", None)
    if isinstance(declared, bool):
        return declared
    _, rows, columns = getattr(experts, name).shape
    # One side of each matrix is the layer's own width: the input of the first, the output of the last.
    plain, swapped = (columns, rows) if name != "down_proj" else (rows, columns)
    as_is, turned = bool(plain == hidden_size), bool(swapped == hidden_size)
    if as_is == turned:
        raise ModelError(
            "stacked experts do not say which dimension is their input",
            where=f"{type(experts).__name__}.{name} [{rows}, {columns}]",
            remedy="Use a dtype or a cache variant for this architecture",
        )
    return turned
