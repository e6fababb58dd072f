"""The byte-level tokenizer as the engine sees it."""

from __future__ import annotations

import pytest

from reference_engine.models.codec import TokenCodec
from tests.small_models import byte_level_tokenizer


@pytest.fixture(scope="session")
def byte_codec() -> TokenCodec:
    return TokenCodec(byte_level_tokenizer())
