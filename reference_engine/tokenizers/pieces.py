"""The pieces of a vocabulary: each with its kind, and the pairs that merge into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from tokenizers import AddedToken, Tokenizer

SPACE = "\u2581"  # how SentencePiece writes a space
_BYTE_NAME = "<0x{:02X}>"
_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_SPELLING = {byte: 0x100 + n for n, byte in enumerate(b for b in range(0x100) if b not in _PRINTABLE)}


class Kind(IntEnum):
    """What a piece is, numbered as in SentencePiece's model and in GGUF's ``tokenizer.ggml.token_type``."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """A token that is found in text as a whole, before anything is cut or merged.

    ``special``: only where special tokens are parsed.
    """

    text: str
    special: bool
    strips_left: bool = False
    strips_right: bool = False

    def added(self) -> AddedToken:
        """Return it as ``tokenizers`` writes it."""
        return AddedToken(
            self.text,
            special=self.special,
            normalized=False,
            lstrip=self.strips_left,
            rstrip=self.strips_right,
        )


def add_pieces(tokenizer: Tokenizer, pieces: Sequence[Piece]) -> None:
    """Let ``tokenizer`` find ``pieces`` as a whole; those it knows keep their IDs."""
    tokenizer.add_special_tokens([piece.added() for piece in pieces if piece.special])
    tokenizer.add_tokens([piece.added() for piece in pieces if not piece.special])


def bytes_are_there(texts: Mapping[str, int]) -> bool:
    """Whether the vocabulary has a token for each byte, written ``<0x00>`` to ``<0xFF>``."""
    return all(_BYTE_NAME.format(byte) in texts for byte in range(256))


def spelt(token: bytes) -> str:
    """Return bytes as GPT-2 writes them: printable ones as they are, the others from U+0100 on."""
    return token.decode("latin-1").translate(_SPELLING)


def merges_by_rank(ranked: Iterable[tuple[str, float]]) -> list[tuple[str, str]]:
    """Return every pair of pieces that makes a third, the lowest rank first.

    SentencePiece and tiktoken keep no merges: of all neighbours that make a
    piece, the one of the lowest rank (or highest score) merges first, and the
    leftmost of equals. A list of merges has no equals. Of two ways to make one
    piece, the longer left half goes first, as it would in a run of one
    character that was merged from the left.
    """
    rank_of = dict(ranked)
    merges = [
        (rank, -cut, text[:cut], text[cut:])
        for text, rank in rank_of.items()
        for cut in range(1, len(text))
        if text[:cut] in rank_of and text[cut:] in rank_of
    ]
    merges.sort()
    return [(left, right) for _, _, left, right in merges]


def unigram_scores(pieces: Iterable[tuple[str, float, int]]) -> list[tuple[str, float]]:
    """Return each piece with its score, from its text, score and kind.

    ``tokenizers`` looks for every piece in text, SentencePiece for none that is
    control or unknown. So these get a score below that of their characters one
    by one; user-defined ones have none to pay.
    """
    listed = list(pieces)
    never = {Kind.CONTROL, Kind.UNKNOWN}
    lowest = min((score for _, score, kind in listed if kind not in never), default=0.0)
    return [
        (
            text,
            (len(text) + 1) * min(lowest, -1.0)
            if kind in never
            else 0.0
            if kind == Kind.USER_DEFINED
            else score,
        )
        for text, score, kind in listed
    ]
