"""The tokenizer of a GGUF file, with or without weights in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reference_engine.tokenizers.gguf_metadata import read_metadata
from reference_engine.tokenizers.gguf_models import build_tokenizer
from reference_engine.tokenizers.gguf_vocabulary import GgufVocabulary
from reference_engine.tokenizers.wrapping import wrapped

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def read_gguf_tokenizer(path: Path) -> PreTrainedTokenizerFast:
    """Return the tokenizer and chat template in the metadata of a GGUF file.

    Raises:
        ModelError: as ``gguf_metadata.read_metadata`` and ``gguf_models.build_tokenizer``.
    """
    vocabulary = GgufVocabulary(read_metadata(path), str(path))
    tokenizer = build_tokenizer(vocabulary)
    named = {name: vocabulary.tokens[token_id] for name, token_id in vocabulary.named_ids.items()}
    return wrapped(tokenizer, named, vocabulary.templates)
