"""Running out of memory while a model loads, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ringtrue.errors import MeasureError

_CPU_ALLOCATOR = "DefaultCPUAllocator"  # its failure is a plain RuntimeError


@contextmanager
def enough_memory(where: str) -> Iterator[None]:
    """Turn a failed allocation inside into an error that says what to do.

    Raises:
        MeasureError: memory ran out while the model ``where`` was loaded or built.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        device = "GPU" if isinstance(error, torch.OutOfMemoryError) else "main"
        raise MeasureError(
            f"{device} memory ran out while the model was loaded",
            where=where,
            remedy="A model takes 4 bytes a parameter, and each variant as much again for what it changes: "
            "limit the variant to some layers, take a smaller model, or a device with more memory",
        ) from error


def is_out_of_memory(error: Exception) -> bool:
    """Whether the error is a failed allocation, in main memory or on a GPU."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or _CPU_ALLOCATOR in str(error)
