"""Fixtures for every test: the real model, loaded once a session, and a small one on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from reference_engine.engine import Engine
    from reference_engine.local_reference import LocalReference
    from reference_engine.models.loading import LoadedModel

# A test is never timed: on a busy machine neither a slow example nor slow drawing is a failure.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# What `make nightly` searches with: pytest loads it over the other by --hypothesis-profile.
settings.register_profile("nightly", settings.get_profile("untimed"), max_examples=100_000, print_blob=True)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def reference() -> Iterator[LocalReference]:
    """The embedded model in float32."""
    from reference_engine.local_reference import open_reference  # noqa: PLC0415  # torch only where it is used

    reference = open_reference("smollm2-135m", device="cpu")
    yield reference
    reference.engine.close()


@pytest.fixture(scope="session")
def engine(reference: LocalReference) -> Engine:
    """The engine behind ``reference``, which other models may join."""
    return reference.engine


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an untied three-layer Llama of random weights and a byte-level tokenizer; context 256."""
    from tests.small_models import write_small_llama  # noqa: PLC0415  # as above

    folder = tmp_path_factory.mktemp("small-model")
    write_small_llama(folder)
    return folder


@pytest.fixture(scope="session")
def small_engine() -> Iterator[Engine]:
    """An engine for small models, so that the real one need not be loaded."""
    from reference_engine.engine import Engine  # noqa: PLC0415  # as above

    with Engine(device="cpu") as engine:
        yield engine


@pytest.fixture(scope="session")
def small(small_engine: Engine, small_model: Path) -> LoadedModel:
    """``small_model``, loaded."""
    return small_engine.load(str(small_model))
