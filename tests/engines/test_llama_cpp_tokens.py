"""Our tokenizers of llama.cpp's 19 vocabulary files against llama.cpp itself, on texts of every kind."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from reference_engine.models.codec import TokenCodec
from reference_engine.tokenizers.opening import open_tokenizer
from tests.engines import servers
from tests.material import vocabulary_folder

pytestmark = pytest.mark.engines

_SCRIPT = Path(__file__).with_name("llama_cpp_tokens.py")
_TEXTS = 200
_WORDS = [
    "Hello", "world's", "I'LL", "don't", "na\u00efve", "\u00c9coleDo\u017b", "stra\u00dfe", "AbC", "ABCd",
    "\u0414\u041e\u041c\u0434\u043e\u043c", "\u4f60\u597d\u4e16\u754c", "\u3053\u3093\u306b\u3061\u306f",
    "\u30ab\u30bf\u30ab\u30ca", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0928\u092e\u0938\u094d",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "e\u0301", "\ufb01", "\u2167",
    "\u00bd", "\u01c5", "\u2019s", "\u2581", "\u2581\u2581", "123", "1234567", "3.14", "0x1F", "//", "/*",
    "<?php", "{}", "[]", "!=", "...", "____", "'", "''", "'S", "<0x0A>", "<s>", "aaaaaaa", "==========",
]  # fmt: skip
_GAPS = ["", "", " ", " ", "  ", "\n", "\n\n", "\r\n", "\t", "     ", " " * 17]

# Where the two differ and why, each with the least text that shows it, and whether a prompt is meant. A
# difference that went away fails its test: then the reason is no longer true.
_EXPLAINED = [
    ("bert-bge", "\ud55c", False, "llama.cpp keeps only the first letter of a decomposed Hangul syllable"),
    ("bert-bge", "\u0cc4", False, "llama.cpp drops a code point without a character, BERT has it unknown"),
    (
        "deepseek-coder",
        "<\uff5cfim\u2581hole\uff5c>",
        False,
        "user-defined in the file, control to llama.cpp",
    ),
    (
        "deepseek-llm",
        " \t\t\u3000",
        False,
        "llama.cpp has U+3000 as white space only, the cut also as a sign",
    ),
    ("falcon", " \x19\U0001f623", False, "a byte without a token: tokenizers drops it before merging"),
    ("phi-3", "</s>", False, "user-defined in the file, control to llama.cpp"),
    ("phi-3", "<|end|>\u3000a", True, "llama.cpp strips ASCII's white space after it, tokenizers all"),
    ("qwen2", "</s>", True, "an ordinary token in the file, control to llama.cpp by its text"),
    ("qwen35", "</s>", True, "an ordinary token in the file, control to llama.cpp by its text"),
]


@pytest.fixture(scope="module")
def codec() -> Callable[[str], TokenCodec]:
    @functools.lru_cache(maxsize=2)
    def opened(name: str) -> TokenCodec:
        return open_tokenizer(vocabulary_folder() / f"ggml-vocab-{name}.gguf")

    return opened


def _names() -> list[str]:
    return sorted(path.stem.removeprefix("ggml-vocab-") for path in vocabulary_folder().glob("*.gguf"))


def _mixed(codec: TokenCodec, count: int, seed: int) -> list[str]:
    """Texts of words of every kind, tokens of the vocabulary and its special tokens."""
    chance = np.random.default_rng(seed)
    special = [codec.decode([token_id]) for token_id in sorted(codec.special_ids)]
    special = [text for text in special if text != "</s>" and "fim" not in text] or [""]
    pools = [_WORDS, _WORDS, _WORDS, special]
    texts = []
    for _ in range(count):
        pool = [pools[chance.integers(len(pools))] for _ in range(chance.integers(1, 14))]
        texts.append("".join(str(chance.choice(words)) + str(chance.choice(_GAPS)) for words in pool))
    return texts


def _llama_cpp(texts: dict[str, list[str]]) -> dict[str, list[list[list[int]]]]:
    command = [servers._python("llama"), str(_SCRIPT), str(vocabulary_folder())]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    answers: dict[str, list[list[list[int]]]] = json.loads(done.stdout)
    return answers


def test_all_19_vocabularies_give_the_ids_of_llama_cpp(codec):
    texts = {name: _mixed(codec(name), _TEXTS, seed) for seed, name in enumerate(_names())}
    theirs = _llama_cpp(texts)

    wrong = {
        (name, text): (plain, prompt)
        for name in texts
        for text, (plain, prompt) in zip(texts[name], theirs[name], strict=True)
        if (list(codec(name).encode(text)), list(codec(name).encode_prompt(text))) != (plain, prompt)
    }

    assert wrong == {}
    assert len(texts) == 19


def test_each_explained_difference_is_still_there(codec):
    texts: dict[str, list[str]] = {}
    for name, text, _, _ in _EXPLAINED:
        texts.setdefault(name, []).append(text)
    theirs = _llama_cpp(texts)

    gone = []
    for name, text, is_prompt, reason in _EXPLAINED:
        plain, prompt = theirs[name][texts[name].index(text)]
        ours = codec(name).encode_prompt(text) if is_prompt else codec(name).encode(text)
        if list(ours) == (prompt if is_prompt else plain):
            gone.append((name, text, reason))
    assert gone == []
