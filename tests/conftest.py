"""Fixtures for every test: the real model, loaded once a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from reference_engine.engine import Engine
    from reference_engine.local_reference import LocalReference


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
