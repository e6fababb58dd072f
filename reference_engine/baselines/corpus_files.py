"""Corpora on disk: plain text, chats, or token IDs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reference_engine.baselines.corpus import SHORTEST, Corpus, TokenSequence, checked_sequence
from reference_engine.baselines.corpus_lines import decoded, json_lines, listed_ids, rendered_ids
from ringtrue.errors import UsageError

if TYPE_CHECKING:
    from reference_engine.models.loading import LoadedModel

DEFAULT_LENGTH = 512
_LINE_SUFFIXES = frozenset({".jsonl", ".ndjson"})


class CorpusForm(StrEnum):
    """What a corpus file holds."""

    TEXT = "text"
    CHATS = "chats"
    IDS = "ids"


def read_corpus(
    paths: Sequence[Path],
    model: LoadedModel,
    *,
    form: CorpusForm | None = None,
    length: int | None = None,
    generation_prompt: bool = True,
) -> Corpus:
    """Return the sequences of all files, in order, as ``model`` tokenizes them.

    Text is cut into sequences of ``length`` tokens (512, or the model's
    context where that is shorter); a tail of one token is left out. Chats are
    rendered by the model's own template. Unless ``form`` says otherwise, a
    file named ``.jsonl`` or ``.ndjson`` holds chats or token IDs, whichever
    its first line is, and any other file holds text.

    Raises:
        UsageError: a file cannot be read, a line is broken or does not fit the
            model (file and line are named), or a file holds no sequence.
    """
    if not paths:
        raise UsageError("no corpus was named", remedy="Name at least one file")
    length = usable_length(length, model.context_length)
    sequences: list[TokenSequence] = []
    for path in paths:
        found = list(_file_sequences(path, model, form, length, generation_prompt=generation_prompt))
        if not found:
            raise UsageError(
                f"the file holds no sequence of at least {SHORTEST} tokens, the corpus is empty",
                where=str(path),
            )
        sequences += found
    return Corpus(tuple(sequences))


def _file_sequences(
    path: Path, model: LoadedModel, form: CorpusForm | None, length: int, *, generation_prompt: bool
) -> Iterator[TokenSequence]:
    data = _read(path)
    match form or _form_of(path, data):
        case CorpusForm.TEXT:
            return _cut_text(path, data, model, length)
        case CorpusForm.CHATS:
            render = partial(rendered_ids, codec=model.codec, generation_prompt=generation_prompt)
            return _sequences(path, data, model, render)
        case CorpusForm.IDS:
            return _sequences(path, data, model, listed_ids)


def usable_length(length: int | None, context_length: int) -> int:
    """Return how many tokens a sequence cut from text has: ``length``, or by default at most 512.

    Raises:
        UsageError: such a sequence has no score, or exceeds the context.
    """
    """Return the length to cut text into, in tokens; by default 512, or the context where that is shorter.

    Raises:
        UsageError: the length leaves nothing to score, or is beyond the context.
    """
    if length is None:
        return min(DEFAULT_LENGTH, context_length)
    if length < SHORTEST:
        raise UsageError(f"sequences of {length} tokens have no score", remedy=f"Give at least {SHORTEST}")
    if length > context_length:
        raise UsageError(
            f"sequences of {length:,} tokens are longer than the model's context of {context_length:,}",
            remedy=f"Cut the text to {context_length:,} tokens or fewer with --length",
        )
    return length


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"the corpus cannot be read: {error.strerror}", where=str(path)) from error


def _form_of(path: Path, data: bytes) -> CorpusForm:
    if path.suffix.lower() not in _LINE_SUFFIXES:
        return CorpusForm.TEXT
    for where, value in json_lines(path, data):
        if isinstance(value, list) or (isinstance(value, dict) and "token_ids" in value):
            return CorpusForm.IDS
        if isinstance(value, dict) and "messages" in value:
            return CorpusForm.CHATS
        raise UsageError(
            "the line is neither a chat nor a list of token IDs",
            where=where,
            remedy='Write {"messages": [...]}, {"token_ids": [...]} or a bare list of IDs on each line',
        )
    return CorpusForm.IDS  # no line at all: the corpus turns out empty


def _cut_text(path: Path, data: bytes, model: LoadedModel, length: int) -> Iterator[TokenSequence]:
    ids = np.array(model.codec.encode(decoded(data, str(path))), dtype=np.int32)
    for start in range(0, len(ids) - SHORTEST + 1, length):
        yield _checked(ids[start : start + length], f"{path}, tokens from {start}", model)


def _sequences(
    path: Path, data: bytes, model: LoadedModel, ids_of: Callable[[Any, str], Sequence[int]]
) -> Iterator[TokenSequence]:
    for where, value in json_lines(path, data):
        yield _checked(ids_of(value, where), where, model)


def _checked(ids: Any, where: str, model: LoadedModel) -> TokenSequence:
    return checked_sequence(
        ids, where, context_length=model.context_length, vocabulary_size=model.vocabulary_size
    )
