"""What a difference of token IDs is to be blamed on.

IDs that the vocabulary lacks, or that hardly share a token with the expected
ones, are another vocabulary's. Else each differing region is read by itself,
by the first rule that holds: the same text in other tokens (tokenizer, or
special-token handling where one side has markers), BOS at the start, ends of
turns, one cut in mid-text, dates, white space (JSON separators inside the
definitions of tools are the tools'), keys and places of definitions, and then
by whose turn it lies in. The layer with most tokens speaks for the prompt.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from tokenizer_checks.alignment import Run
from tokenizer_checks.difference import Difference
from tokenizer_checks.regions import DATE, DATE_LINE, TOOLS, Region, natural, regions, within_tools
from tokenizer_checks.turns import Role, Turn, turn_at, turns
from tokenizer_checks.vocabulary import Vocabulary

OTHER_VOCABULARY = 0.5  # share of tokens in common below which they are another vocabulary's
MOST = 256  # regions that are looked at; where there are more, the first ones speak for them
FEW = 8  # tokens of a prompt below which such a share says nothing
LONG = 64  # tokens missing inside a system prompt above which they are no template's sentence
DATE_LENGTH = 40  # tokens of the longest text that can be a line with a date
KEY = re.compile(r'(?:"|&#34;)\w+(?:"|&#34;): ?')
ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
SEPARATOR = re.compile(r"([,:{\[])\s+|\s+(?=[}\]])")


_PREAMBLE = (Role.START, Role.SYSTEM, Role.TOOLS)


class Layer(StrEnum):
    """The step between messages and IDs that went another way."""

    TOKENIZER = "tokenizer"
    SPECIAL = "special"
    BOS = "bos"
    EOS = "eos"
    DATE = "date"
    WHITE_SPACE = "white_space"
    TOOLS = "tools"
    SYSTEM = "system"
    HISTORY = "history"
    SUFFIX = "suffix"
    CONTENT = "content"
    TRUNCATION = "truncation"
    UNKNOWN = "unknown"


_WORDS = {
    Layer.TOKENIZER: "the same text is cut into other tokens: another pre-tokenizer or vocabulary",
    Layer.SPECIAL: "markers are written as plain text, or plain text is read as markers",
    Layer.BOS: "the token that begins a prompt is missing, doubled or another one",
    Layer.EOS: "a token that ends a turn is missing or one too many",
    Layer.DATE: "a date or time is another one, or missing",
    Layer.WHITE_SPACE: "spaces or line breaks are lost or added",
    Layer.TOOLS: "the definitions of tools are written otherwise, or missing",
    Layer.SYSTEM: "the system prompt is another one, missing or added",
    Layer.HISTORY: "earlier turns are written otherwise, missing or added",
    Layer.SUFFIX: "the end that asks for an answer (generation prompt, prefill) is another one",
    Layer.CONTENT: "the text of a message is changed",
    Layer.TRUNCATION: "one run of the prompt is cut away in mid-text",
    Layer.UNKNOWN: "the place tells nothing of the cause",
}


@dataclass(frozen=True, slots=True)
class Blame:
    """The layer that explains most of the differing tokens, and what else may explain them.

    ``layers`` holds each differing region's layer with its tokens, in order, of
    the first `MOST` regions.
    ``mutations`` are the known mutations that give exactly the used IDs: then
    nothing else is known to, and several are told apart by nothing in this
    prompt. Without one the layer is read from what differs and where; it is
    the likeliest reading, not a proof.
    """

    layer: Layer
    alternatives: tuple[Layer, ...]
    layers: tuple[tuple[Layer, int], ...]
    mutations: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A difference with its turns, for the rules to look at."""

    found: Difference
    vocabulary: Vocabulary
    turns: tuple[Turn, ...]
    used_turns: tuple[Turn, ...]

    def turn(self, region: Region) -> Turn | None:
        """Return the expected turn a region begins in."""
        return turn_at(self.turns, region.run.start)

    def last_user(self) -> Turn | None:
        """Return the turn the prompt asks with."""
        return next((turn for turn in reversed(self.turns) if turn.role is Role.USER), None)


def blame(
    found: Difference, vocabulary: Vocabulary, mutations: Mapping[str, Sequence[int]] | None = None
) -> Blame:
    """Return what a difference is to be blamed on.

    ``mutations`` are the IDs that known faults would give for these messages;
    an exact match names the fault.
    """
    named = tuple(sorted(name for name, ids in (mutations or {}).items() if tuple(ids) == found.used))
    whole = _of_all(found, vocabulary)
    if whole is not None:
        size = max(found.missing, found.added)
        return Blame(whole, (), ((whole, size),), named, _sentence(found, whole, named))
    prompt = _Prompt(found, vocabulary, turns(found.expected, vocabulary), turns(found.used, vocabulary))
    told: list[tuple[Layer, int]] = []
    others: list[Layer] = []
    for region in islice(regions(found.expected, found.used, found.runs, vocabulary), MOST):
        layers = _layers(region, prompt)
        told.append((layers[0], region.size))
        others += layers[1:]
    weights: Counter[Layer] = Counter()
    for layer, size in told:
        weights[layer] += size
    layer = max(weights, key=lambda one: weights[one])  # the first one among equals
    alternatives = tuple(one for one in dict.fromkeys([*weights, *others]) if one is not layer)
    return Blame(layer, alternatives, tuple(told), named, _sentence(found, layer, named))


def _of_all(found: Difference, vocabulary: Vocabulary) -> Layer | None:
    """Return the layer that the two lists tell as wholes, ``None`` where one has to look closer."""
    if not all(vocabulary.knows(i) for i in found.used):
        return Layer.TOKENIZER
    shorter, longer = sorted((len(found.expected), len(found.used)))
    if shorter < FEW or longer > 2 * shorter:
        return None
    shared = (Counter(found.expected) & Counter(found.used)).total()
    return (
        Layer.TOKENIZER if shared < OTHER_VOCABULARY * shorter and not _same_text(found, vocabulary) else None
    )


def _same_text(found: Difference, vocabulary: Vocabulary) -> bool:
    return vocabulary.text(found.expected) == vocabulary.text(found.used)


def _layers(region: Region, prompt: _Prompt) -> list[Layer]:
    """Return the likeliest layer of one region and then the others that would do."""
    by_tokens = _by_tokens(region, prompt)
    if by_tokens is not None:
        return by_tokens
    place = _place(region, prompt)
    if _is_date(region):
        return [Layer.DATE, place]
    if _squeezed(region.text) == _squeezed(region.used_text):
        if _only_separators(region) and within_tools(region.before, region.behind):
            return [Layer.TOOLS, Layer.WHITE_SPACE]
        return [Layer.WHITE_SPACE, Layer.TOKENIZER, place]
    if place not in (Layer.HISTORY, Layer.SUFFIX, Layer.BOS) and _is_tools(region, prompt):
        return [Layer.TOOLS, place]
    return [place]


def _by_tokens(region: Region, prompt: _Prompt) -> list[Layer] | None:
    """Return what the tokens tell whatever they stand in, likeliest first."""
    run, vocabulary = region.run, prompt.vocabulary
    ids = prompt.found.expected[run.start : run.stop]
    used = prompt.found.used[run.used_start : run.used_stop]
    if region.text == region.used_text:
        # Markers on one side alone: the text was read with them as text, or was not.
        marked = Counter(region.markers) != Counter(region.used_markers)
        return [Layer.SPECIAL, Layer.TOKENIZER] if marked else [Layer.TOKENIZER]
    if run.start <= 1 and set(ids + used) <= _begins(prompt):
        return [Layer.BOS]
    if _only(ids + used, vocabulary.ends, vocabulary):
        return [Layer.EOS, Layer.SUFFIX]
    if _cut(region, prompt):
        return [Layer.TRUNCATION, Layer.HISTORY]
    return None


def _begins(prompt: _Prompt) -> frozenset[int]:
    """Return the IDs that may begin a prompt: BOS, or a marker in front of all turns."""
    if prompt.vocabulary.bos is not None:
        return frozenset({prompt.vocabulary.bos})
    first = {ids[0] for ids in (prompt.found.expected, prompt.found.used) if ids}
    return frozenset(first & prompt.vocabulary.special)


def _only(ids: tuple[int, ...], allowed: frozenset[int], vocabulary: Vocabulary) -> bool:
    """Tell whether IDs are some of ``allowed``, and white space besides."""
    rest = [i for i in ids if i not in allowed]
    return len(rest) < len(ids) and not vocabulary.text(rest).strip()


def _cut(region: Region, prompt: _Prompt) -> bool:
    """Tell whether one run is away that is not what a template leaves out: whole lines or turns."""
    expected, run = prompt.found.expected, prompt.found.runs[0]
    if len(prompt.found.runs) > 1 or run.added or run.missing < FEW:
        return False
    # A template that loses its system prompt keeps BOS; one that loses its end keeps the question.
    headless = run.start == 0 and expected[0] == prompt.vocabulary.bos
    if headless or not _asks_still(run, prompt):
        return True
    if natural(expected, run.start, run.stop, prompt.vocabulary):
        return False
    turn = turn_at(prompt.turns, run.start)
    if run.start <= 1 or turn is None or turn.role not in _PREAMBLE or run.stop > turn.stop:
        return True
    # Inside a system turn sentences and whole definitions of tools are left out too.
    whole = region.text.count("{") == region.text.count("}")
    return not whole or (run.missing >= LONG and not TOOLS.search(region.text))


def _asks_still(run: Run, prompt: _Prompt) -> bool:
    """Tell whether a lost end leaves the whole text of the last user's turn."""
    last, expected = prompt.last_user(), prompt.found.expected
    if last is None or run.stop < len(expected) or not last.start <= run.start < last.stop:
        return True
    lost = [i for i in expected[run.start : last.stop] if i not in prompt.vocabulary.special]
    return not prompt.vocabulary.text(lost).strip()


def _is_date(region: Region) -> bool:
    if not DATE.search(region.close) and not DATE.search(region.used_close):
        return False
    if DATE.sub("#", region.close) == DATE.sub("#", region.used_close):
        return True
    if region.size > DATE_LENGTH or region.markers or region.used_markers:
        return False
    lines = [line for line in (region.text + "\n" + region.used_text).splitlines() if line.strip()]
    dated = any(DATE.search(line) for line in lines)
    return dated and all(DATE.search(line) or DATE_LINE.search(line) for line in lines)


def _is_tools(region: Region, prompt: _Prompt) -> bool:
    if TOOLS.search(region.text) or TOOLS.search(region.used_text):
        return True
    keyed = KEY.search(region.text) or KEY.search(region.used_text)
    if keyed or _unescaped(region.text) == _unescaped(region.used_text):
        return bool(TOOLS.search(region.before) or TOOLS.search(region.behind))
    return _role_told(region, prompt) is None and within_tools(region.before, region.behind)


def _only_separators(region: Region) -> bool:
    """Tell whether JSON differs in the spaces behind its separators alone."""
    return region.text != region.used_text and _separated(region.close) == _separated(region.used_close)


def _place(region: Region, prompt: _Prompt) -> Layer:
    """Return the layer that writes the place where a region lies."""
    run, found = region.run, prompt.found
    turn, last = prompt.turn(region), prompt.last_user()
    if turn is None or last is None:
        return _rough_place(region, prompt)
    after_user = run.start >= last.stop or (
        run.start > last.start and bool(region.markers or region.used_markers)
    )
    if (after_user and run.stop >= last.stop) or (run.start == len(found.expected)):
        return Layer.SUFFIX
    told = _role_told(region, prompt)
    role = told or turn.role
    if role is Role.TOOLS:
        return Layer.TOOLS
    first = next(one for one in prompt.turns if one.role is Role.USER)
    in_front = run.start < first.start or (not run.missing and run.start == first.start)
    if role in (Role.SYSTEM, Role.START) or (in_front and told in (None, Role.SYSTEM)):
        return Layer.SYSTEM
    return Layer.CONTENT if role is Role.USER and told is None else Layer.HISTORY


def _role_told(region: Region, prompt: _Prompt) -> Role | None:
    """Return the role of a whole turn that the region brings in or leaves out."""
    run = region.run
    starts = [one for one in prompt.turns if run.start <= one.start < run.stop]
    starts += [one for one in prompt.used_turns if run.used_start <= one.start < run.used_stop]
    roles = [one.role for one in starts if one.role is not Role.START]
    if len(roles) > 1 and Role.SYSTEM not in roles and Role.TOOLS not in roles:
        return Role.ASSISTANT  # several turns of a conversation: its history
    return roles[0] if roles else None


def _rough_place(region: Region, prompt: _Prompt) -> Layer:
    """Return a place for a prompt whose turns no marker tells apart."""
    run, length = region.run, len(prompt.found.expected)
    if run.start <= 1 and region.size <= 1 and (region.markers or region.used_markers):
        return Layer.BOS
    return Layer.SUFFIX if run.stop == length else Layer.UNKNOWN


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _unescaped(text: str) -> str:
    plain = ESCAPE.sub(lambda code: chr(int(code[1], 16)), text)
    return _squeezed(html.unescape(plain.replace("\\/", "/")))


def _separated(text: str) -> str:
    return SEPARATOR.sub(r"\1", text)


def _sentence(found: Difference, layer: Layer, named: tuple[str, ...]) -> str:
    by = len(found.used) - len(found.expected)
    size = (
        "as many tokens"
        if by == 0
        else f"{abs(by):,} token{'s' * (abs(by) > 1)} {'more' if by > 0 else 'fewer'}"
    )
    place = f"first difference at token {found.first:,} of {len(found.expected):,}"
    if named:
        return f"{size}, {place}: the IDs are exactly those of {' and of '.join(named)} ({_WORDS[layer]})"
    return f"{size}, {place}: {_WORDS[layer]}"
