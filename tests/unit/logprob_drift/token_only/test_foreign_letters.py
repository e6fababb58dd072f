import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.token_only.foreign_letters import FOREIGN_NEEDS, foreign


@pytest.mark.parametrize(
    "text",
    [
        "Bread rises because yeast 的一是不 makes gas.",
        "Бридж",
        "これはパンです",
        "그것은 빵입니다",
        "الخبز يرتفع",
        "ขนมปังขึ้น",
    ],
)
def test_letters_of_another_script_in_an_answer_are_seen(text: str) -> None:
    assert foreign(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Crème brûlée, Øresund, naïve, Łódź, Việt Nam",
        "The angle θ, the sum Σ and αβγδε of the Greeks",
        "∑ → ∞ ≈ ½ \u211d \U0001d465\U0001d466\U0001d467 \uff46\uff55\uff4c\uff4c ✓✓✓✓ 😀😀😀😀 ……、、、、",
        "The word tea comes from 茶, they say.",
    ],
)
def test_letters_that_english_texts_use_are_not(text: str) -> None:
    assert not foreign(text)


@given(st.text(st.characters(categories=["L"]), max_size=40))
def test_the_names_of_the_letters_agree(text: str) -> None:
    """Held against the Unicode names, for the scripts that matter most."""
    far = (
        "CJK UNIFIED",
        "HIRAGANA",
        "KATAKANA",
        "HANGUL",
        "CYRILLIC",
        "ARABIC LETTER",
        "THAI",
        "HEBREW LETTER",
    )
    near = ("LATIN", "GREEK", "MATHEMATICAL", "FULLWIDTH LATIN", "DOUBLE-STRUCK", "SCRIPT", "BLACK-LETTER")
    names = [unicodedata.name(letter, "") for letter in text]

    if sum(name.startswith(far) for name in names) >= FOREIGN_NEEDS:
        assert foreign(text)
    if all(name.startswith(near) for name in names):
        assert not foreign(text)
