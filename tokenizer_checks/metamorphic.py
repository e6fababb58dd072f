"""Relations between related requests that must hold whatever the model's template is: no reference needed.

Each check gets IDs or counts of prompt tokens, ``None`` where the server did
not show them, and returns a `Relation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokenizer_checks.alignment import shared_head
from tokenizer_checks.vocabulary import Vocabulary

Ids = Sequence[int]


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation: whether it was kept, and a sentence.

    ``kept`` is ``None`` where what the server showed can't tell. ``at`` is the
    index of the first ID that breaks it, where there is one.
    """

    name: str
    kept: bool | None
    sentence: str
    at: int | None = None


def prefix_kept(earlier: Ids | None, later: Ids | None) -> Relation:
    """Judge whether a conversation with a turn more begins with the IDs of the shorter one.

    ``earlier`` is rendered without a generation prompt. Templates that drop
    earlier reasoning, or move tools to the last turn, break it by design; then
    every turn costs a new prefill.
    """
    if earlier is None or later is None:
        return _untold("prefix", "the IDs of the two conversations were not shown")
    head = shared_head(earlier, later)
    if head == len(earlier):
        return Relation("prefix", True, f"all {head:,} tokens of the earlier turns are kept as they were")
    words = f"a later turn changes earlier ones from token {head:,} of {len(earlier):,} on"
    return Relation("prefix", False, words, head)


def added_tokens_whole(tokenized: Mapping[str, Ids], ids: Mapping[str, int]) -> Relation:
    """Judge whether each added token's text, tokenized as a prompt is, is its one ID.

    ``tokenized`` are the IDs a server gave for the text alone, a BOS in front
    allowed; ``ids`` the model's own, by text.
    """
    asked = sorted(tokenized.keys() & ids.keys())
    if not asked:
        return _untold("added_tokens", "no added token was tokenized")
    split = [text for text in asked if ids[text] not in tokenized[text] or len(tokenized[text]) > 2]
    if not split:
        return Relation("added_tokens", True, f"each of {len(asked)} added tokens is one ID")
    words = f"{len(split)} of {len(asked)} added tokens are not their own ID: {', '.join(split)}"
    return Relation("added_tokens", False, words)


def literal_escaped(plain: Ids | None, literal: Ids | None, vocabulary: Vocabulary) -> Relation:
    """Judge whether a marker written in a user's text stays text.

    ``literal`` is the prompt of ``plain`` with the marker in the user's text.
    """
    if plain is None or literal is None:
        return _untold("literal_marker", "the IDs of the two prompts were not shown")
    extra = sum(i in vocabulary.special for i in literal) - sum(i in vocabulary.special for i in plain)
    return _escaped(parsed=extra > 0)


def literal_escaped_by_count(plain: int | None, literal: int | None, tokens_as_text: int) -> Relation:
    """Judge the same from counts, where the marker's text is ``tokens_as_text`` tokens when not parsed.

    Says nothing where the text is one token either way, or where the count
    grew by something else.
    """
    if plain is None or literal is None:
        return _untold("literal_marker", "the counts of the two prompts were not shown")
    grown = literal - plain
    if tokens_as_text <= 1 or grown not in (1, tokens_as_text):
        return _untold("literal_marker", f"{grown} tokens more can't tell a marker from text")
    return _escaped(parsed=grown == 1)


def white_space_kept(plain: Ids | int | None, spaced: Ids | int | None) -> Relation:
    """Judge whether white space at an end of a user's text reaches the prompt, by IDs or by counts.

    Some models' own templates trim it: the relation tells that it is lost, not
    by whom. Equal counts can't tell, as two spaces may be one token.
    """
    if plain is None or spaced is None:
        return _untold("white_space", "the two prompts were not shown")
    if _same(plain, spaced):
        if isinstance(plain, int):
            return _untold("white_space", "equal counts can't tell whether white space was kept")
        return Relation("white_space", False, "white space at the end of a message does not reach the prompt")
    return Relation("white_space", True, "white space at the end of a message reaches the prompt")


def tools_used(without: Ids | int | None, with_tools: Ids | int | None) -> Relation:
    """Judge whether tools change the prompt, by IDs or by counts.

    A template that ignores tools breaks it also when the server is right.
    """
    if without is None or with_tools is None:
        return _untold("tools", "the two prompts were not shown")
    if _same(without, with_tools):
        if isinstance(without, int):
            return Relation("tools", False, "as many prompt tokens with tools as without: tools are ignored")
        return Relation("tools", False, "the same token IDs with tools as without: tools are ignored")
    return Relation("tools", True, "tools reach the prompt")


def key_order_kept(one: Ids | None, other: Ids | None) -> Relation:
    """Judge whether two orders of the same tools' keys give two prompts."""
    if one is None or other is None:
        return _untold("key_order", "the IDs of the two prompts were not shown; counts can't tell")
    if tuple(one) == tuple(other):
        return Relation("key_order", False, "two orders of the tools' keys give one prompt: keys are sorted")
    return Relation("key_order", True, "the tools' keys keep their order", shared_head(one, other))


def generation_prompt_there(without: Ids | int | None, with_prompt: Ids | int | None) -> Relation:
    """Judge whether asking for an answer adds something behind the messages, and changes nothing else."""
    name = "generation_prompt"
    if without is None or with_prompt is None:
        return _untold(name, "the two prompts were not shown")
    if _same(without, with_prompt):
        return Relation(name, False, "nothing behind the messages asks for an answer")
    if isinstance(without, int) or isinstance(with_prompt, int):
        return Relation(
            name, _size(with_prompt) > _size(without), "the count with a generation prompt differs"
        )
    head = shared_head(without, with_prompt)
    if head == len(without):
        added = len(with_prompt) - head
        return Relation(name, True, f"{added} tokens behind the messages ask for an answer")
    return Relation(name, False, f"the generation prompt changes the messages from token {head:,} on", head)


def terminator_stops(answer_ends: Sequence[int | None], stops: frozenset[int]) -> Relation:
    """Judge whether the IDs that end answers are in the set of IDs at which the server stops.

    ``answer_ends`` are the last IDs of answers that ended by themselves,
    ``None`` where it was not shown.
    """
    ends = {i for i in answer_ends if i is not None}
    if not ends:
        return _untold("terminator", "no ID that ends an answer was shown")
    missing = sorted(ends - stops)
    if missing:
        words = f"answers end with {', '.join(map(str, missing))}, which the server does not stop at"
        return Relation("terminator", False, words)
    return Relation("terminator", True, "the IDs that end answers are ones that the server stops at")


def round_trip(text: str, decoded: str | None) -> Relation:
    """Judge whether text that was tokenized and decoded again is the same text.

    Tokenizers that normalise their input (NFC, NFKC) break it by design.
    """
    if decoded is None:
        return _untold("round_trip", "the server decodes no IDs")
    if decoded == text:
        return Relation("round_trip", True, "text comes back as it was sent")
    at = next((i for i, (a, b) in enumerate(zip(text, decoded, strict=False)) if a != b), None)
    first = min(len(text), len(decoded)) if at is None else at
    lost = ": bytes were replaced" if "\ufffd" in decoded and "\ufffd" not in text else ""
    return Relation("round_trip", False, f"text comes back changed from character {first:,} on{lost}", first)


def count_is_length(ids: Ids | None, count: int | None) -> Relation:
    """Judge whether the server counts as many prompt tokens as it shows IDs."""
    if ids is None or count is None:
        return _untold("count", "IDs or count were not shown")
    if len(ids) == count:
        return Relation("count", True, f"{count:,} prompt tokens are counted and shown")
    return Relation("count", False, f"{count:,} prompt tokens are counted, {len(ids):,} IDs are shown")


def routes_agree(by_route: Mapping[str, Ids]) -> Relation:
    """Judge whether the same request gives the same IDs on every route of a server."""
    if len(by_route) < 2:
        return _untold("routes", "fewer than two routes showed their IDs")
    (first, ids), *others = sorted(by_route.items())
    for route, theirs in others:
        if tuple(theirs) != tuple(ids):
            at = shared_head(ids, theirs)
            return Relation("routes", False, f"{route} differs from {first} from token {at:,} on", at)
    return Relation("routes", True, f"{len(by_route)} routes give the same {len(ids):,} IDs")


def unchanged(before: Ids | None, now: Ids | None) -> Relation:
    """Judge whether the same request gives the IDs it gave before: a change is one of the prompt.

    A prompt with a date in it changes every day by right; ask with the date fixed.
    """
    if before is None or now is None:
        return _untold("over_time", "the IDs were not shown both times")
    if tuple(before) == tuple(now):
        return Relation("over_time", True, f"the same {len(now):,} IDs as before")
    at = shared_head(before, now)
    words = f"the IDs changed from token {at:,} on, {len(before):,} before and {len(now):,} now"
    return Relation("over_time", False, words, at)


def _escaped(*, parsed: bool) -> Relation:
    if parsed:
        return Relation("literal_marker", False, "a marker written in a user's text becomes a control token")
    return Relation("literal_marker", True, "a marker written in a user's text stays text")


def _untold(name: str, why: str) -> Relation:
    return Relation(name, None, why)


def _size(shown: Ids | int) -> int:
    return shown if isinstance(shown, int) else len(shown)


def _same(one: Ids | int, other: Ids | int) -> bool:
    if isinstance(one, int) or isinstance(other, int):
        return _size(one) == _size(other)
    return tuple(one) == tuple(other)
