"""Write a GGUF model as the bfloat16 Hugging Face folder that vLLM loads.

Run by ``servers.exported_weights`` in ringtrue's own environment::

    python tests/engines/export_weights.py MODEL.gguf FOLDER

A model loaded from a GGUF file refuses ``save_pretrained`` because its config
names the quantization it came from; the same weights in a model built from a
clean config have no such memory. Of the tokenizer transformers keeps the
vocabulary and the merges but not the pre-tokenizer that the file names: digits
then take a space from the white space before them, and the model reads tokens
it was not trained on.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import torch
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM


def export(gguf: Path, folder: Path) -> None:
    """Write weights (rounded once, to bfloat16), tokenizer and chat template of ``gguf`` to ``folder``."""
    source = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = copy.deepcopy(source.config)
    if not isinstance(config, LlamaConfig):
        raise TypeError(f"{gguf.name} is no Llama model; its class here must be {type(source).__name__}")
    del config.quantization_config
    config.dtype = torch.bfloat16
    model = LlamaForCausalLM(config)
    model.load_state_dict(source.state_dict())
    model.bfloat16().save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    digits_apart = Digits(individual_digits=True)  # ``tokenizer.ggml.pre = smollm``
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence([digits_apart, ByteLevel(add_prefix_space=False)])
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    export(Path(sys.argv[1]), Path(sys.argv[2]))
