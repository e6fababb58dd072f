"""Vocabularies of real models, opened once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_engine.models.codec import TokenCodec
from reference_engine.tokenizers.opening import open_tokenizer
from tests.material import vocabulary_folder


@pytest.fixture(scope="session")
def vocabulary() -> Callable[[str], TokenCodec]:
    """The codec of llama.cpp's vocabulary file of that name."""

    @functools.lru_cache(maxsize=2)
    def opened(name: str) -> TokenCodec:
        return open_tokenizer(vocabulary_path(name))

    return opened


def vocabulary_path(name: str) -> Path:
    return vocabulary_folder() / f"ggml-vocab-{name}.gguf"
