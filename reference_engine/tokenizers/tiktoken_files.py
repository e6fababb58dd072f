"""Tokenizers in tiktoken's form: a line for each token, its bytes in base64 and its rank.

The file holds the ranks alone. The expression that cuts text before merging and
the special tokens are code in whatever ships it, so both have to be given.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

from reference_engine.tokenizers.configs import (
    CONFIG_NAME,
    added_tokens,
    named_tokens,
    read_config,
    read_template,
)
from reference_engine.tokenizers.pieces import Piece, add_pieces, merges_by_rank, spelt
from reference_engine.tokenizers.wrapping import wrapped
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\s*")


@dataclass(frozen=True, slots=True)
class Encoding:
    """What a tiktoken file leaves out, by tiktoken's own names.

    ``pat_str``: the expression that cuts text. ``special_tokens``: the ID of
    each special token's text.
    """

    pat_str: str | None = None
    special_tokens: Mapping[str, int] = field(default_factory=dict)


def is_tiktoken(path: Path) -> bool:
    """Whether the file's first line is a token in base64 and a rank."""
    with path.open("rb") as file:
        return _LINE.fullmatch(file.readline(4096)) is not None


def read_tiktoken(path: Path, encoding: Encoding) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a file of ranks.

    What ``encoding`` leaves open is looked for in ``tokenizer_config.json``
    beside the file: ``pat_str``, and ``special_tokens`` or
    ``added_tokens_decoder``. A piece that is a token as it stands is not
    merged, as in tiktoken.

    Raises:
        ModelError: a line is no token with its rank, a byte has none, the
            expression is not known or cannot be compiled, or a special token
            has the ID or the text of another token.
    """
    config = read_config(path.parent)
    ranks = _ranks(path)
    special = dict(encoding.special_tokens or config.get("special_tokens") or {})
    special = special or added_tokens(config, str(path.parent / CONFIG_NAME))
    pattern = encoding.pat_str or config.get("pat_str")
    if not isinstance(pattern, str):
        raise ModelError(
            "the file does not say how text is cut before merging (pat_str)",
            where=str(path),
            remedy=f"Put pat_str and special_tokens into {CONFIG_NAME} beside it, from the model's code",
        )
    _check_special(special, ranks, path)
    tokenizer = Tokenizer(BPE({**ranks, **special}, merges_by_rank(ranks.items()), ignore_merges=True))
    tokenizer.pre_tokenizer = Sequence(
        [Split(_compiled(pattern, path), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    add_pieces(tokenizer, [Piece(text, special=True) for text in special])
    named = {name: text for name, text in named_tokens(config).items() if text in special}
    return wrapped(tokenizer, named, read_template(path.parent, config))


def _ranks(path: Path) -> dict[str, int]:
    ranks: dict[str, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        if not _LINE.fullmatch(line):
            raise _broken(path, number, "is no token in base64 with its rank")
        token, rank = line.split()
        try:
            text = spelt(base64.b64decode(token, validate=True))
        except binascii.Error as error:
            raise _broken(path, number, f"is no base64 ({error})") from error
        if text in ranks:
            raise _broken(path, number, "holds a token that stood before")
        ranks[text] = int(rank)
    if len(set(ranks.values())) != len(ranks):
        raise ModelError("two tokens have one rank", where=str(path), remedy="Fetch the file again")
    missing = [byte for byte in range(256) if spelt(bytes([byte])) not in ranks]
    if missing:
        raise ModelError(
            f"byte 0x{missing[0]:02X} has no token (nor have {len(missing) - 1} others)",
            where=str(path),
            remedy="Fetch the file again: text could not be written in its tokens",
        )
    return ranks


def _broken(path: Path, line: int, problem: str) -> ModelError:
    return ModelError(f"the line {problem}", where=f"{path}:{line}", remedy="Fetch the file again")


def _check_special(special: Mapping[str, int], ranks: Mapping[str, int], path: Path) -> None:
    taken = set(ranks.values())
    for text, token_id in special.items():
        if token_id in taken or text in ranks:
            raise ModelError(
                f"the special token {text!r} has the ID {token_id!r}, which another token has, or its text",
                where=str(path),
                remedy="Give the special tokens of this very file",
            )
        taken.add(token_id)


def _compiled(pattern: str, path: Path) -> Regex:
    try:
        return Regex(pattern)
    except Exception as error:  # tokenizers raises no class of its own
        raise ModelError(f"pat_str cannot be compiled ({error})", where=str(path)) from error
