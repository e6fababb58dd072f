"""What two texts say that are the same but for their white space."""

from __future__ import annotations

import re
from collections import Counter

from tokenizer_checks.prompt_turns import PromptTurns
from tokenizer_checks.regions import Region

_SEPARATOR = re.compile(r"([,:{\[])\s+|\s+(?=[}\]])")


def squeezed(text: str) -> str:
    """Return a text without its white space."""
    return "".join(text.split())


def rare_spaces(text: str) -> Counter[str]:
    """Count the spaces that no template writes: one that is lost or added is a change of the text."""
    return Counter(char for char in text if char.isspace() and char not in " \t\r\n")


def only_separators(region: Region) -> bool:
    """Tell whether JSON differs in the spaces behind its separators alone."""
    return region.text != region.used_text and _separated(region.close) == _separated(region.used_close)


def pieces_apart(region: Region, prompt: PromptTurns) -> bool:
    """Tell whether spaces are added inside the text, each before a piece that was tokenized apart.

    SentencePiece writes a space before every text it is given; a template adds
    them beside markers and line breaks alone. Both texts of the region are the
    same without white space.
    """
    ids, used, run = prompt.found.expected, prompt.found.used, region.run
    special, text = prompt.vocabulary.special, prompt.vocabulary.text
    if region.markers or region.used_markers or not region.used_text.strip():
        return False
    pieces = [text((i,)) for i in used[run.used_start : run.used_stop]]
    if "".join(pieces) == region.used_text:
        return False  # each token brings its own space: none is added
    before = "" if run.start == 0 or ids[run.start - 1] in special else region.before[-1:]
    behind = "" if run.stop == len(ids) or ids[run.stop] in special else region.behind[:1]
    mine, theirs = _gaps(before + region.text + behind), _gaps(before + region.used_text + behind)
    gaps = list(zip(mine, theirs, strict=False))
    inside = any(not gap.strip(" ") and len(gap) < len(other) for gap, other in gaps)
    return inside and all(gap.replace(" ", "") == other.replace(" ", "") for gap, other in gaps)


def _gaps(text: str) -> list[str]:
    """Return the white space between each two neighbours of the other characters."""
    return re.split(r"\S", text)[1:-1]


def _separated(text: str) -> str:
    return _SEPARATOR.sub(r"\1", text)
