"""One way in: the tokenizer of a file or folder of any kind, without a model's weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reference_engine.models.codec import TokenCodec
from reference_engine.tokenizers.configs import read_config
from reference_engine.tokenizers.folders import JSON_NAME, read_folder, read_json
from reference_engine.tokenizers.gguf_files import read_gguf_tokenizer
from reference_engine.tokenizers.sentencepiece_files import read_sentencepiece
from reference_engine.tokenizers.tiktoken_files import Encoding, is_tiktoken, read_tiktoken
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def open_tokenizer(path: Path, encoding: Encoding | None = None) -> TokenCodec:
    """Return the tokenizer, with its chat template where one is there.

    ``path`` is a folder as transformers writes it, a ``tokenizer.json``, a GGUF
    file with or without weights, a file of tiktoken's ranks, or a SentencePiece
    model. ``encoding`` is what a tiktoken file leaves out.

    Raises:
        ModelError: there is no such file, its kind is not known, it is damaged,
            or it leaves something open that would have to be guessed.
    """
    return TokenCodec(read_tokenizer(path.expanduser(), encoding))


def read_tokenizer(path: Path, encoding: Encoding | None = None) -> PreTrainedTokenizerFast:
    """Return what `open_tokenizer` wraps.

    Raises:
        ModelError: as there.
    """
    if not path.exists():
        raise ModelError("there is no such file or folder", where=str(path))
    if path.is_dir():
        vocabulary = _vocabulary_in(path)
        return read_folder(path) if vocabulary is None else read_tokenizer(vocabulary, encoding)
    try:
        return _read_file(path, encoding or Encoding())
    except OSError as error:
        raise ModelError(f"the file cannot be read ({error})", where=str(path)) from error


def _read_file(path: Path, encoding: Encoding) -> PreTrainedTokenizerFast:
    if path.suffix == ".gguf":
        return read_gguf_tokenizer(path)
    if path.suffix == ".json":
        return read_json(path)
    if path.suffix == ".tiktoken" or is_tiktoken(path):
        return read_tiktoken(path, encoding)
    if path.suffix == ".model":
        return read_sentencepiece(path)
    raise ModelError(
        "this is no file of a tokenizer",
        where=str(path),
        remedy="Name a folder, a tokenizer.json, a .gguf file, a .tiktoken file, or a SentencePiece .model",
    )


def _vocabulary_in(folder: Path) -> Path | None:
    """Return the file to read in a folder that has no ``tokenizer.json``; ``None`` to read the folder.

    A class that the configuration names may number the pieces of a
    SentencePiece model anew, so the folder is read by that class.
    """
    if (folder / JSON_NAME).is_file():
        return None
    for pattern in ("*.model", "*.tiktoken", "*.gguf"):
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            raise ModelError(
                f"the folder holds {len(found)} files {pattern}", where=str(folder), remedy="Name one of them"
            )
        if found:
            by_class = found[0].suffix == ".model" and not is_tiktoken(found[0])
            return None if by_class and "tokenizer_class" in read_config(folder) else found[0]
    return None
