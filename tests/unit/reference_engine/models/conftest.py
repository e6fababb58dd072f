"""An engine for small models, and small models of other architectures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, GptOssConfig, Llama4TextConfig, MixtralConfig, Qwen3MoeConfig

from tests.small_models import byte_level_tokenizer

_COMMON = {
    "vocab_size": 258,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
}
MIXTURES: dict[str, Callable[[], Any]] = {
    "mixtral": lambda: MixtralConfig(**_COMMON, intermediate_size=96, num_local_experts=4),
    "qwen3_moe": lambda: Qwen3MoeConfig(
        **_COMMON, intermediate_size=96, moe_intermediate_size=64, num_experts=4, num_experts_per_tok=2
    ),
    "gpt_oss": lambda: GptOssConfig(
        **_COMMON, intermediate_size=64, num_local_experts=4, num_experts_per_tok=2, sliding_window=16
    ),
    "llama4_text": lambda: Llama4TextConfig(
        **_COMMON, intermediate_size=96, intermediate_size_mlp=96, num_local_experts=4, moe_layers=[0, 1]
    ),
}


@pytest.fixture(scope="session")
def checkpoints(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of quantized checkpoints of the small model, and the logits that the libraries compute."""
    out = tmp_path_factory.mktemp("checkpoints")
    script = Path(__file__).with_name("write_checkpoints.py")
    subprocess.run([sys.executable, script, small_model, out], check=True, capture_output=True)
    return out


@pytest.fixture(scope="session", params=tuple(MIXTURES))
def mixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a two-layer mixture of experts; two architectures hold their experts transposed."""
    return save_random(MIXTURES[request.param](), tmp_path_factory.mktemp(request.param))


def save_random(config: Any, folder: Path) -> Path:
    """Write a model with random weights and the byte-level tokenizer."""
    with torch.random.fork_rng():
        torch.manual_seed(11)
        network = AutoModelForCausalLM.from_config(config)
        for parameter in network.parameters():  # some classes leave experts and routers at zero
            torch.nn.init.normal_(parameter, std=0.05 if parameter.dim() > 1 else 0.2)
        network.save_pretrained(folder)
    byte_level_tokenizer().save_pretrained(folder)
    return folder
