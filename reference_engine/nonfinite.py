"""Where a number first stops being one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from reference_engine.models.loading import LoadedModel
from reference_engine.scoring import hidden_states
from ringtrue.errors import MeasureError


@dataclass(frozen=True, slots=True)
class NonFinite:
    """The first value of a forward pass that is NaN or infinite.

    ``layer`` counts decoder layers from 0 and is ``None`` outside them;
    ``module`` is the path inside the layer, or in the model outside one.
    ``position`` is the token's, ``None`` where the module saw its tokens in
    another order (an expert of a mixture).
    """

    layer: int | None
    module: str
    position: int | None
    kind: str  # NaN or Inf

    def __str__(self) -> str:
        layer = "" if self.layer is None else f"layer {self.layer}, "
        position = "" if self.position is None else f" at position {self.position}"
        return f"{self.kind} first appears in the output of {layer}{self.module or 'the layer'}{position}"


def require_finite(model: LoadedModel, ids: Sequence[int], values: Tensor) -> None:
    """Raise where ``values`` that ``model`` computed for ``ids`` stop being numbers.

    Raises:
        MeasureError: some value is NaN or infinite; layer, module and position are named.
    """
    if bool(torch.isfinite(values).all()):
        return
    found = locate_nonfinite(model, ids)
    where = str(found) if found else "a value that is NaN or infinite did not appear a second time"
    raise MeasureError(
        f"the model's numbers overflow: {where}",
        where=str(model.name),
        remedy="Use a wider dtype, or mend the weights of that module",
    )


@torch.inference_mode()
def locate_nonfinite(model: LoadedModel, ids: Sequence[int]) -> NonFinite | None:
    """Run ``ids`` once more and return the first module output that is NaN or infinite, ``None`` without one.

    Modules are watched in the order in which they finish, so that the one
    that broke is named and not those that read its output.
    """
    first: list[NonFinite] = []
    tensor = torch.tensor([list(ids)], device=model.device)
    with _watched(model, len(ids), first):
        hidden = hidden_states(model, tensor)
    if first:
        return first[0]
    for position in range(len(ids)):
        if (kind := _kind(model.head(hidden[:, position : position + 1]))) is not None:
            return NonFinite(None, "the head", position, kind)
    return None


@contextmanager
def _watched(model: LoadedModel, length: int, first: list[NonFinite]) -> Iterator[None]:
    layers = {id(module): (index, path) for index, path, module in _layer_modules(model)}
    handles: list[RemovableHandle] = []
    for name, module in model.network.base_model.named_modules():
        layer, path = layers.get(id(module), (None, name or "the body"))

        def look(_: nn.Module, __: Any, output: Any, layer: int | None = layer, path: str = path) -> None:
            if not first and (kind := _kind(tensor := _first_tensor(output))) is not None:
                first.append(NonFinite(layer, path, _position(tensor, length), kind))

        handles.append(module.register_forward_hook(look))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _layer_modules(model: LoadedModel) -> Iterator[tuple[int, str, nn.Module]]:
    for index, layer in enumerate(model.layers):
        for path, module in layer.named_modules():
            yield index, path, module


def _first_tensor(output: Any) -> Tensor | None:
    if isinstance(output, tuple | list) and output:
        return _first_tensor(output[0])
    if hasattr(output, "last_hidden_state"):
        return _first_tensor(output.last_hidden_state)
    return output if isinstance(output, Tensor) else None


def _kind(values: Tensor | None) -> str | None:
    if values is None or not values.is_floating_point() or bool(torch.isfinite(values).all()):
        return None
    return "NaN" if bool(values.isnan().any()) else "Inf"


def _position(values: Tensor | None, length: int) -> int | None:
    if values is None:
        return None
    rows = values[0] if values.dim() > 2 and values.shape[0] == 1 else values
    if rows.shape[0] != length:
        return None
    bad = ~torch.isfinite(rows).reshape(length, -1).all(dim=1)
    return int(bad.nonzero()[0])
