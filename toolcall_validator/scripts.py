"""Scripts of letters: which ones a text uses, and which of them nothing in the request explains."""

from __future__ import annotations

import re
import unicodedata

_NAMED = {
    "CJK": "chinese mandarin cantonese japanese kanji hanzi china japan taiwan korean hanja 中文",
    "HIRAGANA": "japanese hiragana japan",
    "KATAKANA": "japanese katakana japan",
    "HANGUL": "korean hangul korea",
    "CYRILLIC": "russian ukrainian bulgarian serbian cyrillic kazakh mongolian russia ukraine",
    "ARABIC": "arabic persian farsi urdu pashto",
    "HEBREW": "hebrew yiddish",
    "DEVANAGARI": "hindi sanskrit marathi nepali devanagari",
    "THAI": "thai",
}
_TOGETHER = ({"CJK", "HIRAGANA", "KATAKANA"}, {"CJK", "HANGUL"})
_FREE = frozenset(
    {
        "LATIN",
        "GREEK",
        "FULLWIDTH",
        "MATHEMATICAL",
        "MICRO",
        "FEMININE",
        "MASCULINE",
        "MODIFIER",
        "SCRIPT",
        "DOUBLE-STRUCK",
        "BLACK-LETTER",
        "OHM",
        "KELVIN",
        "ANGSTROM",
        "PLANCK",
        "INFORMATION",
        "HALFWIDTH",
    }
)
_GLOSS = re.compile(r"[(（「『《\"“‘`'][^()（）「」『』《》\"“”‘’`'\n]{1,60}[)）」』》\"”’`']")  # noqa: RUF001


def scripts_of(text: str) -> set[str]:
    """Return the scripts of a text's letters, by the first word of their Unicode names."""
    return {script for sign in set(text) if ord(sign) > 127 and (script := _script(sign))}


def at_home(text: str) -> bool:
    """Tell whether all letters of a text are of scripts that need no explanation."""
    return text.isascii() or scripts_of(text) <= _FREE


def foreign_letters(text: str, known: str) -> tuple[int, int] | None:
    """Return the first run of letters whose script neither occurs in ``known`` nor is named there.

    Latin letters and the Greek of formulas are at home everywhere. What stands
    in brackets or quotes is a gloss: a name in its own script is no fault.
    """
    allowed = scripts_of(known) | _FREE
    for group in _TOGETHER:
        if group & allowed:
            allowed |= group
    words = known.lower()
    allowed |= {s for s, names in _NAMED.items() if any(name in words for name in names.split())}
    foreign = scripts_of(text) - allowed
    if not foreign or re.search(r"\btranslat|\blanguages?\b", words):
        return None
    glosses = [match.span() for match in _GLOSS.finditer(text)] if not text.lstrip().startswith("{") else []
    for at, sign in enumerate(text):
        if ord(sign) > 127 and _script(sign) in foreign and not any(a < at < b for a, b in glosses):
            end = at
            while end < len(text) and _script(text[end]) in foreign:
                end += 1
            return at, end
    return None


def _script(sign: str) -> str:
    if not unicodedata.category(sign).startswith("L"):
        return ""
    return unicodedata.name(sign, "").partition(" ")[0]
