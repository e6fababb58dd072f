"""Where text is cut before merges, by the name that a GGUF file gives in ``tokenizer.ggml.pre``.

A GGUF file carries a vocabulary and its merges, and of the cut only a name:
llama.cpp's (``llama_vocab_pre_type``, as of llama-cpp-python 0.3.36). The
patterns are those of the models' own ``tokenizer.json``. Where llama.cpp had to
adapt one to its smaller regular expressions, its comments keep the original,
and that is used here: the model was trained with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, PreTokenizer, Sequence, Split

from ringtrue.errors import ModelError

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_LLAMA3 = rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}"
_QWEN2 = rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}"
_LETTERS = r"[\p{L}\p{M}]"

# One word in capitals, then small letters, or the other way round: GPT-4o's cut and those like it.
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+", rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*")
_CASED_SIGNS = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
_GPT4O = "|".join([*(f"{word}{_CONTRACTIONS}?" for word in _CASED), r"\p{N}{1,3}", _CASED_SIGNS])
_TEKKEN = "|".join([*_CASED, r"\p{N}", _CASED_SIGNS])
_KIMI = "|".join(
    [
        r"[\p{Han}]+",
        *(word.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]") + f"{_CONTRACTIONS}?" for word in _CASED),
        r"\p{N}{1,3}",
        _SIGNS,
        _SPACES,
    ]
)

_CHINESE_JAPANESE = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_PUNCTUATED_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
_DEEPSEEK3 = rf"{_PUNCTUATED_WORD}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
_DEEPSEEK_HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_DEEPSEEK_LETTERS = (
    "\\s?[A-Za-z\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481"
    "\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf"
    "\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"
    "\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-"
    "\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113"
    "\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149"
    "\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
    "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-"
    "\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+"
)
_DEEPSEEK_SIGNS = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
_YOUTU_SCRIPTS = (
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
    "\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
)
_AFMOE_SCRIPTS = (
    "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf"
    "\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"
    "\u1100-\u11ff]+"
)
_BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_SUPERBPE_THREES = r"(?=(\d{3})+(?!\d))"
_THREES_FROM_THE_RIGHT = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
_JAIS2_SPACES = "|".join(
    [r"\s*[\r\n]+", *(rf"\s{{{2**power}}}(?!\S)" for power in range(9, 1, -1)), r"\s{1,2}(?!\S)|\s{1}"]
)


@dataclass(frozen=True, slots=True)
class Cut:
    """How text is cut, and what else llama.cpp concludes from the name.

    Each pattern cuts what the ones before it left, its matches and what lies
    between them. ``whole_words``: a piece that is a token as it stands is not
    merged. ``begins``: BOS is put first unless the file says otherwise.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    begins: bool = False

    def pre_tokenizer(self) -> PreTokenizer:
        """Return the cut, with bytes written as GPT-2 writes them."""
        splits = [Split(Regex(pattern), "isolated") for pattern in self.patterns]
        return Sequence([*splits, ByteLevel(add_prefix_space=False, use_regex=False)])


def cut_names() -> frozenset[str]:
    """Return every name that is known."""
    return frozenset(name for names, _ in _CUTS for name in names)


def cut_named(name: str | None, where: str) -> Cut:
    """Return the cut of that name; ``None`` means that the file names none, which is llama.cpp's ``default``.

    Raises:
        ModelError: no such name is known: what it stands for cannot be guessed.
    """
    for names, cut in _CUTS:
        if (name or "default") in names:
            return cut
    raise ModelError(
        f"tokenizer.ggml.pre is {name!r}, a cut that is not known",
        where=where,
        remedy="Name the model's folder with its tokenizer.json instead",
    )


_CUTS: Final = (
    (
        {"default"},
        Cut((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")),
    ),
    (
        {
            "gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code",
            "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert", "mpt", "olmo", "jais", "exaone4",
            "trillion", "granite-docling",
        },
        Cut((_GPT2,)),
    ),
    (
        {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
        Cut((r"\p{N}", _GPT2)),
    ),
    (
        {
            "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
            "jina-v5-nano",
        },
        Cut((_LLAMA3,), whole_words=True, begins=True),
    ),
    ({"dbrx", "smaug-bpe", "chatglm-bpe"}, Cut((_LLAMA3,))),
    ({"glm4", "glm5"}, Cut((_LLAMA3,), whole_words=True)),
    (
        {
            "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "megrez", "hunyuan", "grok-2",
            "solar-open",
        },
        Cut((_QWEN2,)),
    ),
    (
        {"qwen35"},
        Cut(
            (
                rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?{_LETTERS}+|\p{{N}}"
                rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",
            )
        ),
    ),
    ({"ufakzeka"}, Cut((rf"{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}",))),
    ({"laguna"}, Cut((r"[^\n]+|[\n]+", _QWEN2))),
    (
        {"minicpm5"},
        Cut(
            (r"\p{N}{1,3}", rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}+|{_SIGNS}|{_SPACES}"),
            whole_words=True,
        ),
    ),
    ({"jais-2"}, Cut((rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_JAIS2_SPACES}",))),
    (
        {"seed-coder"},
        Cut((rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",)),
    ),
    (
        {"bailingmoe", "bailingmoe2", "llada-moe"},
        Cut(
            (
                r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
                r"|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
    ),
    (
        {"exaone-moe"},
        Cut(
            (
                rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
                r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
    ),
    ({"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, Cut((_GPT4O,))),
    ({"granite-embed-multi-97m"}, Cut((_GPT4O,), whole_words=True)),
    ({"tekken"}, Cut((_TEKKEN,), whole_words=True, begins=True)),
    ({"tiny_aya", "cohere2moe"}, Cut((r"\d{1,3}(?=(?:\d{3})*\b)", _GPT4O))),
    ({"kimi-k2"}, Cut((_KIMI,))),
    (
        {"youtu"},
        Cut(
            (
                _YOUTU_SCRIPTS,
                "|".join([*(f"{word}{_CONTRACTIONS}?" for word in _CASED), r"\p{N}", _CASED_SIGNS]),
            ),
            whole_words=True,
        ),
    ),
    (
        {"deepseek-llm"},
        Cut((r"[\r\n]", _DEEPSEEK_LETTERS, _DEEPSEEK_SIGNS, r"\s+$", _DEEPSEEK_HAN, r"\p{N}+")),
    ),
    ({"deepseek-coder"}, Cut((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _DEEPSEEK_HAN, r"\p{N}"))),
    (
        {"deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"},
        Cut((r"\p{N}{1,3}", _CHINESE_JAPANESE, _DEEPSEEK3)),
    ),
    (
        {"spark2_5"},
        Cut(
            (
                r"\p{N}{1,3}",
                _CHINESE_JAPANESE,
                rf"{_PUNCTUATED_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+",
                r"\p{N}",
            )
        ),
    ),
    ({"afmoe"}, Cut((_THREES_FROM_THE_RIGHT, _AFMOE_SCRIPTS, _DEEPSEEK3))),
    ({"falcon"}, Cut((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]"))),
    ({"poro-chat", "bloom", "gpt3-finnish"}, Cut((_BLOOM,))),
    ({"viking"}, Cut((_BLOOM, r"\p{N}"))),
    ({"superbpe"}, Cut((r"\p{N}+", _SUPERBPE_THREES))),
    (
        {"chameleon"},
        Cut(
            (
                r"<sentinel:[0-9]+>",
                r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                r"([\t\n]|    |  )",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
                _GPT2,
            ),
            begins=True,
        ),
    ),
)  # fmt: skip
