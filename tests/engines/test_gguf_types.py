"""Our GGUF types against llama.cpp's own quantization, bit for bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, quants

from reference_engine.models.gguf_types import round_to_gguf
from reference_engine.models.kinds import GGUF_TYPES
from tests.engines import servers

pytestmark = pytest.mark.engines

_SCRIPT = Path(__file__).with_name("ggml_quantize.py")
_COLUMNS = 512


def _weights() -> torch.Tensor:
    weights = torch.randn(256, _COLUMNS, generator=torch.Generator().manual_seed(0)) * 0.05
    weights[0] = 0
    weights[1, :16] = 0
    weights[2] *= 1e-18
    weights[3, 7] = 50
    weights[4, ::2] = weights[4, 1::2]  # ties for the largest
    weights[5] = weights[5].abs()
    return weights


@pytest.mark.parametrize("kind", GGUF_TYPES)
def test_weights_are_rounded_as_llama_cpp_rounds_them(kind: str) -> None:
    weights = _weights()
    command = [servers._python("llama"), _SCRIPT, kind, str(_COLUMNS)]
    held = subprocess.run(command, input=weights.numpy().tobytes(), capture_output=True, check=True).stdout
    rows = np.frombuffer(held, np.uint8).reshape(len(weights), -1)
    theirs = quants.dequantize(rows, GGMLQuantizationType[kind.upper()])
    assert np.array_equal(round_to_gguf(weights, kind).numpy(), theirs)
