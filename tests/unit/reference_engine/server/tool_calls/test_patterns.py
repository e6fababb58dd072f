from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_engine.server.tool_calls.patterns import UnwritableError, matching

PATTERNS = (
    r"^[A-Z]{3}-\d{2}$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"(cat|dog)s?",
    r"^(?:a|b(c|d)*)+$",
    r"[^0-9]+x",
    r"\w+@\w+\.com",
    r"a{2,}b{1,3}?.",
    r"^[\w-]+$",
    r"^#[0-9a-fA-F]{6}$",
    "",
)


def _rng(seed):
    return random.Random(seed)  # noqa: S311  # no secret


@given(st.sampled_from(PATTERNS), st.integers())
def test_what_is_written_matches(pattern, seed):
    assert re.search(pattern, matching(pattern, _rng(seed)))


@given(st.text(alphabet="ab01[](){}|*+?.^$\\d-,:", max_size=12), st.integers())
def test_any_text_is_written_for_or_refused(pattern, seed):
    try:
        written = matching(pattern, _rng(seed))
    except UnwritableError:
        return
    assert isinstance(written, str)


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(?<n>a)", "a)", "(a", "[a", "[^\\da-z]", "a\\", "*", "\\bx", "a{,2}", "a{5000}"]
)
def test_what_is_not_understood_is_refused(pattern):
    with pytest.raises(UnwritableError):
        matching(pattern, _rng(0))
