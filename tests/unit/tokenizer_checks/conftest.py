import pytest

from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer


@pytest.fixture(scope="session")
def small() -> SmallTokenizer:
    return SmallTokenizer()
