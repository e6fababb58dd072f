"""From a GGUF file's vocabulary to a tokenizer, one function for each ``tokenizer.ggml.model``.

Each does what llama.cpp does with the same file, but for the models' own
expressions for the cut (`pre_tokenizers`). The format says nothing about
Unicode normalisation, so there is none, as there is none in llama.cpp: for text
that is not in NFC the model's own ``tokenizer.json`` may give other IDs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram, WordPiece

from reference_engine.tokenizers.gguf_vocabulary import GgufVocabulary
from reference_engine.tokenizers.pieces import (
    SPACE,
    Kind,
    add_pieces,
    bytes_are_there,
    merges_by_rank,
    unigram_scores,
)
from reference_engine.tokenizers.pre_tokenizers import cut_named
from ringtrue.errors import ModelError

# Byte-pair encoding over plain UTF-8 instead of GPT-2's spelling of bytes.
_PLAIN_CUTS: Final = frozenset({"gemma4", "granite-embed-multi-311m", "sarvam-moe"})
_LINES = r"[^\n]+|[\n]+"


def build_tokenizer(vocabulary: GgufVocabulary) -> Tokenizer:
    """Return the tokenizer of a GGUF file, with its special tokens and what it puts around a prompt.

    Raises:
        ModelError: the file's kind of tokenizer is not known, or a key that it
            needs is missing or contradicts another.
    """
    build = _BUILDERS.get(vocabulary.model)
    if build is None:
        raise ModelError(
            f"tokenizer.ggml.model is {vocabulary.model!r}; {', '.join(_BUILDERS)} are read",
            where=vocabulary.where,
            remedy="Name the model's folder with its tokenizer.json instead",
        )
    return build(vocabulary)


def _gpt2(vocabulary: GgufVocabulary) -> Tokenizer:
    if vocabulary.cut in _PLAIN_CUTS:
        return _gemma4(vocabulary)
    cut = cut_named(vocabulary.cut, vocabulary.where)
    tokenizer = Tokenizer(_pairs(vocabulary, vocabulary.merges, ignore_merges=cut.whole_words))
    tokenizer.pre_tokenizer = cut.pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    return _framed(tokenizer, vocabulary, begins=cut.begins)


def _gemma4(vocabulary: GgufVocabulary) -> Tokenizer:
    tokenizer = Tokenizer(_plain_pairs(vocabulary, vocabulary.merges))
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_LINES), "isolated")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    always = vocabulary.cut != "sarvam-moe"  # llama.cpp overrides the files that say no
    return _framed(tokenizer, vocabulary, begins=always, always_begins=always)


def _llama(vocabulary: GgufVocabulary) -> Tokenizer:
    ordinary = {Kind.NORMAL, Kind.UNUSED}
    columns = zip(vocabulary.tokens, vocabulary.scores, vocabulary.kinds, strict=True)
    merges = merges_by_rank((text, -score) for text, score, kind in columns if kind in ordinary)
    tokenizer = Tokenizer(_plain_pairs(vocabulary, merges))
    prefixed = vocabulary.flag("add_space_prefix", default=True)
    spaces: list[normalizers.Normalizer] = [normalizers.Replace(" ", SPACE)]
    tokenizer.normalizer = normalizers.Sequence(([normalizers.Prepend(SPACE)] if prefixed else []) + spaces)
    back = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(back + ([decoders.Strip(" ", 1, 0)] if prefixed else []))
    return _framed(tokenizer, vocabulary, begins=True)


def _plain_pairs(vocabulary: GgufVocabulary, merges: list[tuple[str, str]]) -> BPE:
    unknown = vocabulary.named_ids.get("unk_token")
    return _pairs(
        vocabulary,
        merges,
        unk_token=None if unknown is None else vocabulary.tokens[unknown],
        fuse_unk=True,
        byte_fallback=bytes_are_there(vocabulary.ids),
    )


def _pairs(vocabulary: GgufVocabulary, merges: list[tuple[str, str]], **options: Any) -> BPE:
    try:
        return BPE(vocabulary.ids, merges, **options)
    except Exception as error:  # tokenizers raises no class of its own
        raise vocabulary.error("merges", f"does not fit the tokens ({error})") from error


def _bert(vocabulary: GgufVocabulary) -> Tokenizer:
    # The file marks the pieces that begin a word; the library marks those that do not.
    whole = {piece.text for piece in vocabulary.pieces}
    spelt = {
        text if text in whole else text[1:] if text.startswith(SPACE) else f"##{text}": token_id
        for text, token_id in vocabulary.ids.items()
    }
    unknown = vocabulary.tokens[_named_id(vocabulary, "unk_token")]
    tokenizer = Tokenizer(WordPiece(spelt, unk_token=unknown))
    lowercase = vocabulary.flag("normalizer.lowercase", default=True)
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase,
        strip_accents=vocabulary.flag("normalizer.strip_accents", default=lowercase),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return _framed(tokenizer, vocabulary, begins=True, ends=True, last="sep_token")


def _t5(vocabulary: GgufVocabulary) -> Tokenizer:
    columns = zip(vocabulary.tokens, vocabulary.scores, vocabulary.kinds, strict=True)
    tokenizer = Tokenizer(Unigram(unigram_scores(columns), unk_id=_named_id(vocabulary, "unk_token")))
    parts: list[normalizers.Normalizer] = []
    if vocabulary.charsmap:
        parts.append(_replacements(vocabulary))
    if vocabulary.flag("remove_extra_whitespaces", default=False):
        parts.append(normalizers.Replace(Regex(r"\A +| +\z"), ""))
        parts.append(normalizers.Replace(Regex(" {2,}"), " "))
    if vocabulary.flag("add_space_prefix", default=False):
        parts.append(normalizers.Prepend(SPACE))
    tokenizer.normalizer = normalizers.Sequence([*parts, normalizers.Replace(" ", SPACE)])
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    return _framed(tokenizer, vocabulary, begins=False, ends=True)


def _replacements(vocabulary: GgufVocabulary) -> normalizers.Normalizer:
    try:
        return normalizers.Precompiled(vocabulary.charsmap)
    except Exception as error:  # tokenizers raises no class of its own
        raise vocabulary.error("precompiled_charsmap", f"is no table of replacements ({error})") from error


def _framed(
    tokenizer: Tokenizer,
    vocabulary: GgufVocabulary,
    *,
    begins: bool,
    ends: bool = False,
    last: str = "eos_token",
    always_begins: bool = False,
) -> Tokenizer:
    """Add the special tokens, and those put first and last where the file does not say otherwise."""
    add_pieces(tokenizer, vocabulary.pieces)
    begins = always_begins or vocabulary.flag("add_bos_token", default=begins)
    ends = vocabulary.flag("add_eos_token", default=ends)
    first_id = _named_id(vocabulary, "bos_token") if begins else None
    last_id = _named_id(vocabulary, last) if ends else None
    used = {
        name: token_id for name, token_id in [("first", first_id), ("last", last_id)] if token_id is not None
    }
    tokenizer.post_processor = processors.TemplateProcessing(
        single=["first"] * (first_id is not None) + ["$A"] + ["last"] * (last_id is not None),
        pair=["$A", "$B"],
        special_tokens=[
            {"id": name, "ids": [token_id], "tokens": [vocabulary.tokens[token_id]]}
            for name, token_id in used.items()
        ],
    )
    return tokenizer


def _named_id(vocabulary: GgufVocabulary, name: str) -> int:
    if name not in vocabulary.named_ids:
        raise ModelError(
            f"the file needs a {name} and does not say which token that is",
            where=vocabulary.where,
            remedy="Convert the model anew, or name its folder with the tokenizer.json instead",
        )
    return vocabulary.named_ids[name]


_BUILDERS: Final[Mapping[str, Callable[[GgufVocabulary], Tokenizer]]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "gemma4": _gemma4,
    "bert": _bert,
    "t5": _t5,
}
