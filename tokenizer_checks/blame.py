"""What a difference of token IDs is to be blamed on.

IDs that the vocabulary lacks, or that hardly share a token with the expected
ones, are another vocabulary's. Else each differing region is read by itself,
by the first rule that holds: the same text in other tokens (tokenizer, or
special-token handling where one side has markers), BOS, ends of turns, markers
written out, one cut (the oldest turns, or in mid-text), dates, white space (JSON
separators inside the definitions of tools are the tools'; spaces inside the text
are SentencePiece's, where it tokenizes pieces apart), keys and places of
definitions, and then by whose turn it lies in. The turn that the answer goes on
is the suffix, all turns before it are history. The layer with most tokens speaks
for the prompt.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from tokenizer_checks.alignment import Run
from tokenizer_checks.cuts import is_cut
from tokenizer_checks.difference import Difference
from tokenizer_checks.prompt_turns import PromptTurns, prompt_turns
from tokenizer_checks.regions import DATE, DATE_LINE, TOOLS, Region, regions, within_tools
from tokenizer_checks.turns import Role
from tokenizer_checks.vocabulary import Vocabulary
from tokenizer_checks.white_space import only_separators, pieces_apart, rare_spaces, squeezed

OTHER_VOCABULARY = 0.5  # share of tokens in common below which they are another vocabulary's
MOST = 256  # regions that are looked at; where there are more, the first ones speak for them
FEW = 8  # tokens of a prompt below which such a share says nothing
DATE_LENGTH = 40  # tokens of the longest text that can be a line with a date
KEY = re.compile(r'(?:"|&#34;)\w+(?:"|&#34;): ?')
ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
LETTER = re.compile(r"[^\W_]")


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
    Layer.TRUNCATION: "one run of the prompt is cut away: its oldest turns, or in mid-text",
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
    prompt = prompt_turns(found, vocabulary)
    read = [
        (_layers(region, prompt), region.size)
        for region in islice(regions(found.expected, found.used, found.runs, vocabulary), MOST)
    ]
    told = list(_with_writer(read))
    others = [one for layers, _ in read for one in layers]
    weights: Counter[Layer] = Counter()
    for layer, size in told:
        weights[layer] += size
    layer = max(weights, key=lambda one: weights[one])  # the first one among equals
    alternatives = tuple(one for one in dict.fromkeys([*weights, *others]) if one is not layer)
    return Blame(layer, alternatives, tuple(told), named, _sentence(found, layer, named))


def _with_writer(read: Sequence[tuple[list[Layer], int]]) -> Iterator[tuple[Layer, int]]:
    """Yield each region's layer; calls escaped as the definitions of tools are have one writer with them."""
    tools = any(layers[0] is Layer.TOOLS for layers, _ in read)
    for layers, size in read:
        calls = layers[:2] == [Layer.HISTORY, Layer.TOOLS]
        yield Layer.TOOLS if tools and calls else layers[0], size


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


def _layers(region: Region, prompt: PromptTurns) -> list[Layer]:
    """Return the likeliest layer of one region and then the others that would do."""
    by_tokens = _by_tokens(region, prompt)
    if by_tokens is not None:
        return by_tokens
    place = _place(region, prompt)
    if _is_date(region):
        return [Layer.DATE, place]
    if squeezed(region.text) == squeezed(region.used_text):
        return _by_white_space(region, place, prompt)
    if place is Layer.HISTORY and _unescaped(region.text) == _unescaped(region.used_text):
        return [place, Layer.TOOLS]
    if place not in (Layer.HISTORY, Layer.SUFFIX, Layer.BOS) and _is_tools(region, prompt):
        return [Layer.TOOLS, place]
    return [place]


def _by_white_space(region: Region, place: Layer, prompt: PromptTurns) -> list[Layer]:
    """Return what a region says that is the same but for its white space."""
    if only_separators(region) and _in_tools(region):
        return [Layer.TOOLS, Layer.WHITE_SPACE]
    if rare_spaces(region.text) != rare_spaces(region.used_text):
        return [place, Layer.WHITE_SPACE]
    if pieces_apart(region, prompt):
        return [Layer.TOKENIZER, Layer.WHITE_SPACE]
    return [Layer.WHITE_SPACE, Layer.TOKENIZER, place]


def _by_tokens(region: Region, prompt: PromptTurns) -> list[Layer] | None:
    """Return what the tokens tell whatever they stand in, likeliest first."""
    run, vocabulary = region.run, prompt.vocabulary
    ids = prompt.found.expected[run.start : run.stop]
    used = prompt.found.used[run.used_start : run.used_stop]
    if region.text == region.used_text:
        return _cut_otherwise(region, prompt)
    if _is_begin(run, ids, used, prompt):
        return [Layer.BOS]
    if _only(ids + used, vocabulary.ends, vocabulary) and _ends(ids, vocabulary) != _ends(used, vocabulary):
        return [Layer.EOS, Layer.SUFFIX]
    if _written_out(region, vocabulary):
        return [Layer.SPECIAL, _place(region, prompt)]
    if is_cut(region, prompt):
        return [Layer.TRUNCATION, Layer.HISTORY]
    return None


def _cut_otherwise(region: Region, prompt: PromptTurns) -> list[Layer]:
    """Return what a text says that is the same in other tokens."""
    if Counter(region.markers) == Counter(region.used_markers):
        return [Layer.TOKENIZER]
    # Markers on one side alone: read as text, or text read as them. What else is cut otherwise weighs too.
    whole, found = region.run, prompt.found
    marked = plain = 0
    for run in found.runs:
        if not whole.start <= run.start <= run.stop <= whole.stop:
            continue
        mine, theirs = found.expected[run.start : run.stop], found.used[run.used_start : run.used_stop]
        if prompt.vocabulary.special.isdisjoint(mine + theirs):
            plain += max(run.missing, run.added)
        else:
            marked += max(run.missing, run.added)
    return [Layer.TOKENIZER, Layer.SPECIAL] if plain > marked else [Layer.SPECIAL, Layer.TOKENIZER]


def _is_begin(run: Run, ids: tuple[int, ...], used: tuple[int, ...], prompt: PromptTurns) -> bool:
    """Tell whether BOS is missing, one too many, or another token."""
    begins, vocabulary = _begins(prompt), prompt.vocabulary
    if set(ids + used) <= begins:
        return run.start <= 1 or (vocabulary.bos is not None and vocabulary.bos not in vocabulary.ends)
    replaced = run.start == 0 and len(ids) == len(used) == 1
    return replaced and begins.issuperset(ids) and vocabulary.special.issuperset(used)


def _written_out(region: Region, vocabulary: Vocabulary) -> bool:
    """Tell whether a marker stands as text, or text as a marker, that differs in nothing but signs."""
    if bool(region.markers) == bool(region.used_markers):
        return False
    if not all(LETTER.search(vocabulary.text((i,))) for i in region.markers + region.used_markers):
        return False  # a marker that is a sign itself, such as one for quotes
    mine, theirs = ("".join(LETTER.findall(text)) for text in (region.text, region.used_text))
    return bool(mine) and mine == theirs


def _begins(prompt: PromptTurns) -> frozenset[int]:
    """Return the IDs that may begin a prompt: BOS, or a marker in front of all turns."""
    if prompt.vocabulary.bos is not None:
        return frozenset({prompt.vocabulary.bos})
    first = {ids[0] for ids in (prompt.found.expected, prompt.found.used) if ids}
    return frozenset(first & prompt.vocabulary.special)


def _only(ids: tuple[int, ...], allowed: frozenset[int], vocabulary: Vocabulary) -> bool:
    """Tell whether IDs are some of ``allowed``, and white space besides."""
    rest = [i for i in ids if i not in allowed]
    return len(rest) < len(ids) and not vocabulary.text(rest).strip()


def _ends(ids: tuple[int, ...], vocabulary: Vocabulary) -> Counter[int]:
    return Counter(i for i in ids if i in vocabulary.ends)


def _is_date(region: Region) -> bool:
    if not DATE.search(region.close) and not DATE.search(region.used_close):
        return False
    if DATE.sub("#", region.close) == DATE.sub("#", region.used_close):
        return True
    if region.size > DATE_LENGTH or region.markers or region.used_markers:
        return False
    lines = [line for line in (region.text + "\n" + region.used_text).splitlines() if LETTER.search(line)]
    dated = any(DATE.search(line) for line in lines)
    return dated and all(DATE.search(line) or DATE_LINE.search(line) for line in lines)


def _is_tools(region: Region, prompt: PromptTurns) -> bool:
    if TOOLS.search(region.text) or TOOLS.search(region.used_text):
        return True
    keyed = KEY.search(region.text) or KEY.search(region.used_text)
    if keyed or _unescaped(region.text) == _unescaped(region.used_text):
        return bool(TOOLS.search(region.before) or TOOLS.search(region.behind))
    return _role_told(region, prompt) is None and within_tools(region.before, region.behind)


def _in_tools(region: Region) -> bool:
    return bool(TOOLS.search(region.text)) or within_tools(region.before, region.behind)


def _place(region: Region, prompt: PromptTurns) -> Layer:
    """Return the layer that writes the place where a region lies."""
    run, found = region.run, prompt.found
    turn, last = prompt.turn(run.start), prompt.last_user()
    if turn is None or last is None:
        return _rough_place(region, prompt)
    after_user = run.start >= last.stop or (
        run.start > last.start and bool(region.markers or region.used_markers)
    )
    opened, behind = prompt.opened, prompt.used_opened
    earlier = turn.role is not Role.USER and run.start < opened >= run.stop and run.used_stop <= behind
    if (after_user and run.stop >= last.stop and not earlier) or run.start == len(found.expected):
        return Layer.SUFFIX
    told = _role_told(region, prompt)
    role = told or turn.role
    if role is Role.TOOLS:
        return Layer.TOOLS
    first = next(one for one in prompt.turns if one.role is Role.USER)
    in_front = run.start < first.start or (not run.missing and run.start == first.start)
    if role in (Role.SYSTEM, Role.START) or (in_front and told in (None, Role.SYSTEM)):
        return Layer.SYSTEM
    if role is Role.USER and told is None:
        return Layer.SYSTEM if _in_front_of_text(region, prompt) else Layer.CONTENT
    return Layer.HISTORY


def _in_front_of_text(region: Region, prompt: PromptTurns) -> bool:
    """Tell whether a paragraph before a user's text is lost or added, where some write the system prompt."""
    run, special = region.run, prompt.vocabulary.special
    if (run.missing and run.added) or region.markers or region.used_markers or run.start == 0:
        return False
    first = prompt.found.expected[run.start - 1] in special
    return first and (region.text or region.used_text).endswith("\n\n")


def _role_told(region: Region, prompt: PromptTurns) -> Role | None:
    """Return the role of a whole turn that the region brings in or leaves out."""
    run = region.run
    starts = [one for one in prompt.turns if run.start <= one.start < run.stop]
    starts += [one for one in prompt.used_turns if run.used_start <= one.start < run.used_stop]
    roles = [one.role for one in starts if one.role is not Role.START]
    if len(roles) > 1 and Role.SYSTEM not in roles and Role.TOOLS not in roles:
        return Role.ASSISTANT  # several turns of a conversation: its history
    return roles[0] if roles else None


def _rough_place(region: Region, prompt: PromptTurns) -> Layer:
    """Return a place for a prompt whose turns no marker tells apart."""
    run, length = region.run, len(prompt.found.expected)
    if run.start <= 1 and region.size <= 1 and (region.markers or region.used_markers):
        return Layer.BOS
    if run.start <= 1 and run.stop < length:
        return Layer.SYSTEM  # whatever stands before the first turn
    return Layer.SUFFIX if run.stop == length else Layer.UNKNOWN


def _unescaped(text: str) -> str:
    plain = ESCAPE.sub(lambda code: chr(int(code[1], 16)), text)
    return squeezed(html.unescape(plain.replace("\\/", "/")))


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
