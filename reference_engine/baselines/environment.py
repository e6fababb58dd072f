"""What the last bit of a score depends on besides model and tokens."""

from __future__ import annotations

import platform
from importlib.metadata import version

import torch

from reference_engine.baselines.manifest import Environment

_LIBRARIES = ("ringtrue", "torch", "transformers", "pyarrow")


def environment_of(device: torch.device) -> Environment:
    """Return what this process computes with on ``device``."""
    if device.type == "cuda":
        processor = torch.cuda.get_device_name(device)
    else:
        processor = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    versions = {"python": platform.python_version()} | {name: version(name) for name in _LIBRARIES}
    return Environment(device.type, processor, torch.get_num_threads(), versions)
