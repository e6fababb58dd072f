"""SentencePiece models (``tokenizer.model``), unigram and byte-pair."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError
from tokenizers import Regex, Tokenizer, normalizers
from tokenizers.pre_tokenizers import Sequence, Split
from transformers.convert_slow_tokenizer import SpmConverter, import_protobuf

from reference_engine.tokenizers.configs import named_tokens, read_config, read_template
from reference_engine.tokenizers.pieces import SPACE, Kind, Piece, add_pieces, unigram_scores
from reference_engine.tokenizers.wrapping import wrapped
from ringtrue.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_WHOLE = (Kind.UNKNOWN, Kind.CONTROL)
_UNIGRAM, _BPE = 1, 2  # sentencepiece_model.proto, TrainerSpec.ModelType


def read_sentencepiece(path: Path) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a SentencePiece model.

    Its settings (normalisation, dummy prefix, user-defined pieces) are followed
    as the library follows them. Whether BOS or EOS goes around a prompt is not
    in the file: ``add_bos_token`` and ``add_eos_token`` of
    ``tokenizer_config.json`` beside it say so, and without them nothing does.

    Raises:
        ModelError: the file is no SentencePiece model, or one of words or characters.
    """
    proto = _parsed(path)
    config = read_config(path.parent)
    tokenizer = _tokenizer(proto, legacy=bool(config.get("legacy", True)), path=path)
    add_pieces(
        tokenizer, [Piece(piece.piece, special=True) for piece in proto.pieces if piece.type in _WHOLE]
    )
    named = {**_own_names(proto), **named_tokens(config)}
    frame = {key: bool(config[key]) for key in ("add_bos_token", "add_eos_token") if key in config}
    return wrapped(tokenizer, named, read_template(path.parent, config), **frame)


def _parsed(path: Path) -> Any:
    model: Any = import_protobuf().ModelProto()  # type: ignore[no-untyped-call]
    try:
        model.ParseFromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise ModelError(
            f"this is no SentencePiece model ({error})", where=str(path), remedy="Fetch the file again"
        ) from error
    if not model.pieces:
        raise ModelError(
            "the SentencePiece model has no pieces", where=str(path), remedy="Fetch the file again"
        )
    return model


def _tokenizer(proto: Any, *, legacy: bool, path: Path) -> Tokenizer:
    vocabulary: Any
    if proto.trainer_spec.model_type == _UNIGRAM:
        vocabulary = unigram_scores((piece.piece, piece.score, piece.type) for piece in proto.pieces)
    elif proto.trainer_spec.model_type == _BPE:
        vocabulary = {piece.piece: token_id for token_id, piece in enumerate(proto.pieces)}
    else:
        raise ModelError(
            "the SentencePiece model is of words or characters; unigram and byte-pair models are read",
            where=str(path),
        )
    build: Any = SpmConverter.build_tokenizer_from_spm_proto
    try:
        tokenizer: Tokenizer = build(proto, vocabulary, legacy=legacy)
    except Exception as error:  # tokenizers raises no class of its own
        raise ModelError(f"the SentencePiece model contradicts itself ({error})", where=str(path)) from error
    if proto.normalizer_spec.remove_extra_whitespaces:  # at the end also where the text itself has the sign
        end = normalizers.Replace(Regex(f"{SPACE}+\\z"), "")
        tokenizer.normalizer = normalizers.Sequence([tokenizer.normalizer, end])
    if proto.trainer_spec.model_type == _BPE:
        _cut_control_texts(tokenizer, [piece.piece for piece in proto.pieces if piece.type in _WHOLE])
    return tokenizer


def _cut_control_texts(tokenizer: Tokenizer, texts: list[str]) -> None:
    """Keep control pieces from being made of text.

    With user-defined pieces, what stands between two of them is a token as it
    is if it is one, control or not. So such a text is cut where merges would
    have left a border anyway.
    """
    model: Any = tokenizer.model
    if not model.ignore_merges:
        return
    model.ignore_merges = False
    ends = {text: model.tokenize(text)[0].offsets[1] for text in texts}
    model.ignore_merges = True
    halves = [(text.encode()[:end].decode(), text.encode()[end:].decode()) for text, end in ends.items()]
    borders = "|".join(rf"\A{re.escape(left)}(?={re.escape(right)}\z)" for left, right in halves)
    before = tokenizer.pre_tokenizer
    tokenizer.pre_tokenizer = Sequence([*([before] if before else []), Split(Regex(borders), "isolated")])


def _own_names(proto: Any) -> dict[str, str]:
    spec = proto.trainer_spec
    ids = {
        "bos_token": spec.bos_id,
        "eos_token": spec.eos_id,
        "unk_token": spec.unk_id,
        "pad_token": spec.pad_id,
    }
    return {
        name: proto.pieces[number].piece for name, number in ids.items() if 0 <= number < len(proto.pieces)
    }
