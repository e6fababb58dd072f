"""Letters that an English answer has no use for: uninitialised memory often reads as Chinese."""

from __future__ import annotations

FOREIGN_NEEDS = 4  # letters; a name quoted in its own script is no fault

# Latin and Greek are left out, and so are the letters of mathematics.
_FOREIGN = (
    (0x0400, 0x1CFF),  # Cyrillic to Georgian, the scripts of India and South-East Asia among them
    (0x2C00, 0x2C5F),  # Glagolitic
    (0x2C80, 0x2DFF),  # Coptic to the extensions of Cyrillic
    (0x2E80, 0xA71F),  # Chinese, Japanese, Yi
    (0xA800, 0xAB2F),
    (0xAB70, 0xFAFF),  # Korean, more Chinese
    (0xFB1D, 0xFEFF),  # Hebrew and Arabic in their printed forms
    (0xFF66, 0xFFDC),
    (0x10000, 0x1D3FF),
    (0x1E000, 0x3FFFF),
)


def foreign(text: str) -> bool:
    """Return whether a text has at least `FOREIGN_NEEDS` letters of neither Latin nor Greek script."""
    return sum(character.isalpha() and _is_foreign(ord(character)) for character in text) >= FOREIGN_NEEDS


def _is_foreign(code: int) -> bool:
    return any(low <= code <= high for low, high in _FOREIGN)
