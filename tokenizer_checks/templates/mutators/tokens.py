"""Faults of white space and markers, and of the way from text to tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tokenizer_checks.blame import Layer
from tokenizer_checks.templates.chat import Prompt
from tokenizer_checks.templates.mutators.mutator import Encode, Mutator, marker_pattern

_THINK = re.compile(r"(</?think>)")
# Brackets without a space between them, in either direction.
_SHAPED = re.compile(r"<[^<>\s]{1,60}>|[\[\]][^\[\]\s]{1,30}[\[\]]|\]<\][a-z]+\[>\[")
# Each pattern finds where another pre-tokenizer cuts and the model's own does not.
_WORD = re.compile(r"(?<=\S)(?=\s)|(?<=\w)(?=[^\w\s])|(?<=[^\w\s])(?=\w)|(?<=\s)(?=\S)")
_DIGIT = re.compile(r"(?<=\d)(?=\d)|(?<=\D)(?=\d)|(?<=\d)(?=\D)")
_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\w)(?=')")


def _untrimmed(prompt: Prompt) -> Prompt:
    return replace(prompt, dialect=replace(prompt.dialect, trim_blocks=False))


def _unstripped(prompt: Prompt) -> Prompt:
    return replace(prompt, dialect=replace(prompt.dialect, lstrip_blocks=False))


def _last_newline_dropped(_: Prompt, text: str) -> str:
    return text.removesuffix("\n")


def _spaced(prompt: Prompt, text: str) -> str:
    return marker_pattern(prompt).sub(lambda match: f" {match.group()} ", text).strip(" ")


def _space_behind(prompt: Prompt, text: str) -> str:
    pattern = marker_pattern(prompt)
    return re.sub(rf"({pattern.pattern})(?=\w)", r"\1 ", text)


def _cut_at(joints: re.Pattern[str]) -> Callable[[Prompt, str, Encode], Sequence[int]]:
    """Return an encoder that cuts text at these joints before it is tokenized, and leaves markers whole."""

    def encoded(prompt: Prompt, text: str, encode: Encode) -> Sequence[int]:
        ids: list[int] = []
        for piece, is_marker in _pieces(text, _markers(prompt, text, encode)):
            parts = [piece] if is_marker else joints.split(piece)
            for part in filter(None, parts):
                ids += encode(part, parse_special=True)
        return ids

    return encoded


def _markers(prompt: Prompt, text: str, encode: Encode) -> re.Pattern[str]:
    """Return what finds the control tokens in a text, whatever their looks: no pre-tokenizer cuts them."""
    looked = {one for one in _SHAPED.findall(text) if _is_marker(one, encode)}
    longest_first = sorted(looked, key=lambda one: (-len(one), one))
    return re.compile("|".join([*map(re.escape, longest_first), marker_pattern(prompt).pattern]))


def _is_marker(text: str, encode: Encode) -> bool:
    return len(encode(text, parse_special=True)) == 1 < len(encode(text, parse_special=False))


def _pieces(text: str, markers: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    at = 0
    for match in markers.finditer(text):
        yield text[at : match.start()], False
        yield match.group(), True
        at = match.end()
    yield text[at:], False


def _think_split(_: Prompt, text: str, encode: Encode) -> Sequence[int]:
    ids: list[int] = []
    for part in filter(None, _THINK.split(text)):
        pieces = ("<", part[1:-1], ">") if _THINK.fullmatch(part) else (part,)
        for piece in pieces:
            ids += encode(piece, parse_special=True)
    return ids


def _content_escaped(prompt: Prompt, text: str, encode: Encode) -> Sequence[int]:
    """Read the control tokens that a user's text holds as plain text."""
    ids: list[int] = []
    at = 0
    for content in _user_texts(prompt):
        start = text.find(content, at)
        if start < 0:
            continue
        ids += encode(text[at:start], parse_special=True)
        ids += encode(content, parse_special=False)
        at = start + len(content)
    return [*ids, *encode(text[at:], parse_special=True)]


def _user_texts(prompt: Prompt) -> Iterator[str]:
    markers = marker_pattern(prompt)
    for message in prompt.chat.messages:
        content = message.get("content")
        if message.get("role") == "user" and isinstance(content, str) and markers.search(content):
            yield content.strip()


TOKENS = (
    Mutator(
        "trim_blocks_off",
        Layer.WHITE_SPACE,
        "swift-transformers#322",
        "the newline behind a block of the template is kept",
        prompt=_untrimmed,
    ),
    Mutator(
        "lstrip_blocks_off",
        Layer.WHITE_SPACE,
        "swift-transformers#322",
        "the indentation before a block of the template is kept",
        prompt=_unstripped,
    ),
    Mutator(
        "last_newline_dropped",
        Layer.WHITE_SPACE,
        "transformers#34462",
        "the newline that ends the prompt is lost",
        text=_last_newline_dropped,
    ),
    Mutator(
        "spaces_around_markers",
        Layer.WHITE_SPACE,
        "mistral-common#3",
        "a space stands on both sides of every marker",
        text=_spaced,
    ),
    Mutator(
        "space_behind_markers",
        Layer.WHITE_SPACE,
        "llama.cpp#7049",
        "a space is put between a marker and the word behind it",
        text=_space_behind,
    ),
    Mutator(
        "content_markers_escaped",
        Layer.SPECIAL,
        "vllm#31735, sglang#30962",
        "control tokens in a user's text are read otherwise than by the model's own tokenizer",
        ids=_content_escaped,
    ),
    Mutator(
        "think_marker_split",
        Layer.SPECIAL,
        "FreeToken#315",
        "the marker of reasoning is no token of its own but three",
        ids=_think_split,
    ),
    Mutator(
        "words_cut",
        Layer.TOKENIZER,
        "ollama#17698",
        "another pre-tokenizer: white space and punctuation never join a word",
        ids=_cut_at(_WORD),
    ),
    Mutator(
        "digits_cut",
        Layer.TOKENIZER,
        "llama.cpp#7476",
        "another pre-tokenizer: every digit stands alone",
        ids=_cut_at(_DIGIT),
    ),
    Mutator(
        "case_cut",
        Layer.TOKENIZER,
        "transformers#42131",
        "another pre-tokenizer: words are cut where capitals begin and before apostrophes",
        ids=_cut_at(_CASE),
    ),
)
