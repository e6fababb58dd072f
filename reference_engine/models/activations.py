"""Modules that round what they are given, as engines with quantized activations do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from reference_engine.models.rounding import (
    round_rows_to_float8,
    round_rows_to_int8,
    to_float8,
    to_int8,
)
from ringtrue.errors import ModelError

_ROUNDED = "input_rounding"
_INT8_HALF_RANGE = 127.5


@dataclass(frozen=True, slots=True)
class InputRounding:
    """How activations [..., tokens, channels] are rounded before a matrix multiplies them.

    ``kind`` is ``fp8`` or ``int8``. With a ``scale`` all tokens share it, and
    what does not fit saturates; without one every token has its own, absmax
    over 448 for fp8 and, as compressed-tensors and torchao compute it, over
    127.5 for int8.
    """

    kind: str
    scale: float | None = None

    def __call__(self, values: Tensor) -> Tensor:
        """Return ``values`` rounded, in their own dtype."""
        if self.scale is not None:
            scaled = values.float() / self.scale
            rounded = to_float8(scaled) if self.kind == "fp8" else to_int8(scaled)
            return rounded.mul_(self.scale).to(values.dtype)
        if self.kind == "fp8":
            return round_rows_to_float8(values)
        return round_rows_to_int8(values, largest=_INT8_HALF_RANGE)


class RoundedLinear(nn.Linear):
    """A linear layer whose input is rounded first. It may be copied, and moved to another network."""

    input_rounding: Callable[[Tensor], Tensor]

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # PyTorch's name
        """Return the product with the rounded input."""
        return super().forward(self.input_rounding(input))


class RoundedExperts(nn.Module):
    """The forward pass of transformers' stacked experts with the input of both matrices rounded."""

    input_rounding: Callable[[Tensor], Tensor]

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """Return [tokens, hidden], the experts that each token chose, weighed."""
        experts: Any = self
        states = self.input_rounding(hidden_states)
        output = torch.zeros_like(hidden_states)
        for expert in sorted(set(top_k_index.flatten().tolist())):
            if expert >= experts.num_experts:  # a mask of expert parallelism
                continue
            tokens, places = torch.where(top_k_index == expert)
            inner = self._multiply("gate_up_proj" if experts.has_gate else "up_proj", expert, states[tokens])
            # Every dispatched class has it, each with its own activation; transformers calls it so too.
            inner = experts._apply_gate(inner) if experts.has_gate else experts.act_fn(inner)  # noqa: SLF001
            outer = self._multiply("down_proj", expert, self.input_rounding(inner))
            if experts.has_post_expert_norm:
                outer = experts.post_expert_norm(outer)
            weighed = outer * top_k_weights[tokens, places, None]
            output.index_add_(0, tokens, weighed.to(output.dtype))
        return output

    def _multiply(self, name: str, expert: int, states: Tensor) -> Tensor:
        experts: Any = self
        matrix = getattr(experts, name)[expert]
        bias = getattr(experts, f"{name}_bias")[expert] if experts.has_bias else None
        return nn.functional.linear(states, matrix.T if experts.is_transposed else matrix, bias)


def round_inputs(module: nn.Module, rounding: Callable[[Tensor], Tensor]) -> None:
    """Make ``module`` round its inputs from now on, in place; its parameters and their names stay.

    Raises:
        ModelError: it is neither a plain linear layer nor experts that transformers dispatches itself.
    """
    plain: Any = module
    if isinstance(module, (RoundedLinear, RoundedExperts)):
        pass
    elif type(module) is nn.Linear:
        plain.__class__ = RoundedLinear
    elif hasattr(module, "is_transposed") and hasattr(module, "has_post_expert_norm"):
        plain.__class__ = type(f"Rounded{type(module).__name__}", (RoundedExperts, type(module)), {})
    else:
        raise ModelError(
            "this module's inputs cannot be rounded",
            where=type(module).__name__,
            remedy="Use fp8, which rounds the weights alone",
        )
    setattr(plain, _ROUNDED, rounding)
