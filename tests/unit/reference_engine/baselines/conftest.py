"""A small real model in an engine of its own, a corpus for it, and a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reference_engine.baselines.corpus import Corpus, TokenSequence
from reference_engine.baselines.exact import ExactScores
from reference_engine.baselines.store import BaselineStore
from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from tests.unit.reference_engine.baselines.sources import RememberedScores

LENGTHS = (2, 47, 3, 60, 21, 90, 33)


@pytest.fixture(scope="session")
def corpus(small: LoadedModel) -> Corpus:
    rng = np.random.default_rng(5)
    return Corpus(
        tuple(
            TokenSequence(rng.integers(small.vocabulary_size, size=length, dtype=np.int32), f"here:{line}")
            for line, length in enumerate(LENGTHS, start=1)
        )
    )


@pytest.fixture(scope="session")
def source(small_engine: Engine, small: LoadedModel) -> RememberedScores:
    """The exact scores of the small model, each computed once a session."""
    return RememberedScores(ExactScores(small_engine, small))


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "baselines")
