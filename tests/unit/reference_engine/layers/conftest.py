"""Small models of many architectures on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedTokenizerFast
from transformers.models.gemma3.configuration_gemma3 import Gemma3TextConfig
from transformers.models.gpt2.configuration_gpt2 import GPT2Config
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.mixtral.configuration_mixtral import MixtralConfig
from transformers.models.qwen3_moe.configuration_qwen3_moe import Qwen3MoeConfig

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,  # far from zero, so that layers matter
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}

ARCHITECTURES: dict[str, Callable[[int], PretrainedConfig]] = {
    "llama": lambda vocabulary: LlamaConfig(vocab_size=vocabulary, **SIZES),
    "gemma3": lambda vocabulary: Gemma3TextConfig(
        vocab_size=vocabulary, head_dim=16, sliding_window=16, **SIZES
    ),
    "gpt2": lambda vocabulary: GPT2Config(
        vocab_size=vocabulary, n_embd=64, n_layer=4, n_head=4, n_positions=256, initializer_range=0.2
    ),
    "mixtral": lambda vocabulary: MixtralConfig(
        vocab_size=vocabulary, num_local_experts=4, num_experts_per_tok=2, **SIZES
    ),
    "qwen3_moe": lambda vocabulary: Qwen3MoeConfig(
        vocab_size=vocabulary, head_dim=16, num_experts=4, **EXPERTS, **SIZES
    ),
}

MakeModel = Callable[..., Path]


@pytest.fixture(scope="session")
def make_model(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """Write a random model of one of ``ARCHITECTURES`` with the byte-level tokenizer, changed at will."""

    def make(architecture: str, *, seed: int = 0, change: Callable[[Any], None] | None = None) -> Path:
        folder = tmp_path_factory.mktemp(architecture)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(small_model)
        config = ARCHITECTURES[architecture](len(tokenizer))
        config.eos_token_id = config.bos_token_id = config.pad_token_id = None
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = AutoModelForCausalLM.from_config(config)
        if change is not None:
            with torch.no_grad():
                change(network)
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make
