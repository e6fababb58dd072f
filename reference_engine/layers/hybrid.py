"""A network of which some layers are another network's.

The network runs its own forward code; only entries of its list of layers are
exchanged for the time of a pass. So masks, positions and everything else that
an architecture computes around its layers stay its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class StandIn(nn.Module):
    """A module in the place of ``original``: whatever else is asked of it, the original answers."""

    def __init__(self, original: nn.Module) -> None:
        super().__init__()
        # Not registered as a submodule: the original's parameters are not ours.
        object.__setattr__(self, "original", original)

    def __getattr__(self, name: str) -> Any:
        """Ask the original, for example for its ``attention_type`` or its ``weight``."""
        return getattr(object.__getattribute__(self, "original"), name)


class Recalled(StandIn):
    """Returns a recorded output instead of computing one; without one, hands its input on."""

    def __init__(self, original: nn.Module, output: Any = None) -> None:
        super().__init__(original)
        object.__setattr__(self, "output", output)

    def forward(self, hidden: Tensor, *_: Any, **__: Any) -> Any:
        """Return the recorded output, or ``hidden``."""
        output = object.__getattribute__(self, "output")
        return hidden if output is None else output


class Foreign(StandIn):
    """A module of another dtype: what enters is cast to its dtype, what leaves to the caller's."""

    def __init__(self, original: nn.Module, inside: torch.dtype, outside: torch.dtype) -> None:
        super().__init__(original)
        self.inside, self.outside = inside, outside

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """Run the original in its own dtype."""
        cast_in = {name: converted(value, self.inside) for name, value in options.items()}
        original: nn.Module = object.__getattribute__(self, "original")
        return converted(original(*converted(arguments, self.inside), **cast_in), self.outside)


def converted(value: Any, dtype: torch.dtype) -> Any:
    """Return ``value`` with every floating tensor in it, inside tuples and lists too, cast to ``dtype``."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if type(value) in {tuple, list}:
        return type(value)(converted(part, dtype) for part in value)
    return value


def dtype_of(module: nn.Module) -> torch.dtype | None:
    """Return the floating dtype of a module's first parameter, ``None`` without one."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), None)


def fitted(module: nn.Module, beside: nn.Module) -> nn.Module:
    """Return ``module`` so that it can take the place of ``beside``, whatever dtype each computes in."""
    inside, outside = dtype_of(module), dtype_of(beside)
    if inside is None or outside is None or inside == outside:
        return module
    return Foreign(module, inside, outside)


@contextmanager
def exchanged(root: nn.Module, others: Mapping[str, nn.Module]) -> Iterator[None]:
    """Put ``others`` at their paths inside ``root`` while open."""
    before = {path: root.get_submodule(path) for path in others}
    try:
        for path, module in others.items():
            _put(root, path, module)
        yield
    finally:
        for path, module in before.items():
            _put(root, path, module)


def path_of(module: nn.Module, root: nn.Module) -> str | None:
    """Return the path of ``module`` inside ``root``, ``None`` if it is not there."""
    return next((path for path, other in root.named_modules() if other is module), None)


def _put(root: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(root.get_submodule(parent), name, module)
