"""The split before BPE that a GGUF file names and transformers does not read.

A GGUF file says in ``tokenizer.ggml.pre`` how text is cut before merges are
applied. transformers converts vocabulary and merges and assumes GPT-2's cut,
so a model whose digits stand alone gets IDs for numbers that it never saw in
training. The names are llama.cpp's (``llama_vocab_pre_type``).
"""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

_KEY = "tokenizer.ggml.pre"
# GPT-2's cut after every digit was set apart.
_SINGLE_DIGITS = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"})


def named_pre_tokenizer(reader: Any) -> str | None:
    """Return the name in the metadata of a ``gguf.GGUFReader``'s file, ``None`` where it has none."""
    field = reader.get_field(_KEY)
    return None if field is None else str(field.contents())


def apply_pre_tokenizer(tokenizer: Tokenizer, name: str | None) -> None:
    """Give ``tokenizer`` the split called ``name`` where it is one that transformers gets wrong."""
    if name in _SINGLE_DIGITS:
        tokenizer.pre_tokenizer = Sequence(
            [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
        )
