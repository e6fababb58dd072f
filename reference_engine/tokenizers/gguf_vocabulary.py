"""What the metadata of a GGUF file says about its tokenizer, checked.

Keys and defaults are llama.cpp's (``llama_vocab::impl::load``, as of
llama-cpp-python 0.3.36).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from reference_engine.tokenizers.pieces import Kind, Piece
from ringtrue.errors import ModelError

_PREFIX = "tokenizer.ggml."
# Name of a special token -> key of its ID. The misspelt one is the format's own.
_ID_KEYS: Final = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "sep_token": "seperator_token_id",
    "pad_token": "padding_token_id",
    "mask_token": "mask_token_id",
}
_DEFAULT_IDS: Final[Mapping[str, Mapping[str, int]]] = {
    "llama": {"bos_token": 1, "eos_token": 2, "unk_token": 0},
    "bert": {"bos_token": 101, "sep_token": 102, "unk_token": 100, "pad_token": 0, "mask_token": 103},
    "t5": {"eos_token": 1, "unk_token": 2, "pad_token": 0},
}
# Converters marked some of these as ordinary tokens; llama.cpp knows them by their text.
_CONTROL_TEXTS: Final = frozenset(
    {
        "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
        "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
        "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "[e~[",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    }
)  # fmt: skip
_PHI3_KEEPS_SPACE: Final = frozenset({"<unk>", "<s>", "<|endoftext|>"})


@dataclass(frozen=True)
class GgufVocabulary:
    """The tokenizer of a GGUF file, as its metadata gives it. ``where`` is the file."""

    metadata: Mapping[str, Any]
    where: str

    @property
    def model(self) -> str:
        """How text becomes tokens: ``gpt2``, ``llama``, ``gemma4``, ``bert``, ``t5``, ..."""
        return str(self._get("model", str))

    @property
    def cut(self) -> str | None:
        """The name of the cut before merges, ``None`` where the file gives none."""
        name = self.metadata.get(_PREFIX + "pre")
        return None if name is None else str(name)

    @cached_property
    def tokens(self) -> list[str]:
        """Every token in the order of its ID; an empty one gets the name that llama.cpp gives it."""
        listed = self._list("tokens", str)
        tokens = [text or f"[EMPTY_{token_id}]" for token_id, text in enumerate(listed)]
        if len(set(tokens)) != len(tokens):
            twice = Counter(tokens).most_common(1)[0][0]
            raise self.error("tokens", f"holds {twice!r} twice")
        return tokens

    @cached_property
    def ids(self) -> dict[str, int]:
        """The ID of every token."""
        return {text: token_id for token_id, text in enumerate(self.tokens)}

    @cached_property
    def kinds(self) -> list[int]:
        """The kind of every token, as in `pieces.Kind`; without the key all are normal."""
        if _PREFIX + "token_type" not in self.metadata:
            return [Kind.NORMAL] * len(self.tokens)
        return self._one_each("token_type", int)

    @cached_property
    def scores(self) -> list[float]:
        """The score of every token, log probabilities or negated ranks.

        Raises:
            ModelError: the key is missing, and this model merges by it.
        """
        return self._one_each("scores", int, float)

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The pairs that merge, the first before the others; whether they are tokens is not checked here.

        Raises:
            ModelError: the key is missing, or a merge is no pair.
        """
        cuts = [(text, text.find(" ", 1)) for text in self._list("merges", str)]  # a pair may begin with one
        single = next((text for text, cut in cuts if cut < 0), None)
        if single is not None:
            raise self.error("merges", f"holds {single!r}, which is no pair")
        return [(text[:cut], text[cut + 1 :]) for text, cut in cuts]

    def flag(self, name: str, *, default: bool) -> bool:
        """Return the truth value of the key ``tokenizer.ggml.NAME``."""
        value = self.metadata.get(_PREFIX + name, default)
        if not isinstance(value, bool):
            raise self.error(name, f"is {value!r}, no truth value")
        return value

    @property
    def charsmap(self) -> bytes:
        """SentencePiece's table of replacements, empty where the file has none."""
        key = "precompiled_charsmap"
        numbers = self._list(key, int) if _PREFIX + key in self.metadata else []
        return bytes(number & 0xFF for number in numbers)

    @cached_property
    def named_ids(self) -> dict[str, int]:
        """The IDs of the special tokens that have a name: ``bos_token``, ``eos_token``, ..."""
        named = dict(_DEFAULT_IDS.get(self.model, {}))
        for name, key in _ID_KEYS.items():
            value = self.metadata.get(_PREFIX + key)
            if value is not None:
                named[name] = self._checked_id(key, value)
        return {name: token_id for name, token_id in named.items() if token_id < len(self.tokens)}

    @cached_property
    def pieces(self) -> list[Piece]:
        """The tokens that are found in text as a whole, with the white space that some take along."""
        whole = {Kind.UNKNOWN, Kind.CONTROL, Kind.USER_DEFINED}
        return [
            self._piece(text, kind)
            for text, kind in zip(self.tokens, self.kinds, strict=True)
            if kind in whole or text in _CONTROL_TEXTS
        ]

    def _piece(self, text: str, kind: int) -> Piece:
        special = kind != Kind.USER_DEFINED or text in _CONTROL_TEXTS
        return Piece(text, special, self._strips_left(text), self._strips_right(text))

    def _strips_left(self, text: str) -> bool:
        pre, architecture = self.cut or "", str(self.metadata.get("general.architecture", ""))
        if self._name_has("modern-bert"):
            return text == "[MASK]"
        masked = pre.startswith(("jina-v2-de", "jina-v2-es", "jina-v2-code"))
        return text == "<mask>" and (masked or architecture in {"nomic-bert-moe", "jina-bert-v3"})

    def _strips_right(self, text: str) -> bool:
        # The file does not carry this; llama.cpp knows Phi-3 by its name too.
        return self._name_has("phi-3", "phi3") and text not in _PHI3_KEEPS_SPACE

    def _name_has(self, *parts: str) -> bool:
        name = str(self.metadata.get("general.name", "")).lower()
        return any(part in name for part in parts)

    @property
    def templates(self) -> str | dict[str, str] | None:
        """The chat template; several by name (``default``, ``tool_use``, ...); ``None`` if there is none."""
        key = "tokenizer.chat_template"
        names = self.metadata.get(f"{key}s", [])
        named = {name: self.metadata[f"{key}.{name}"] for name in names if f"{key}.{name}" in self.metadata}
        default = self.metadata.get(key)
        if default is None:
            return named or None
        return {"default": default, **named} if named else str(default)

    def error(self, key: str, problem: str) -> ModelError:
        """Return the error that says what is wrong with the key ``tokenizer.ggml.KEY``."""
        return ModelError(
            f"{_PREFIX}{key} {problem}",
            where=self.where,
            remedy="Convert the model anew, or name its folder with the tokenizer.json instead",
        )

    def _get(self, key: str, kind: type) -> Any:
        value = self.metadata.get(_PREFIX + key)
        if value is None:
            raise self.error(key, "is missing")
        if not isinstance(value, kind):
            raise self.error(key, f"is a {type(value).__name__}")
        return value

    def _list(self, key: str, *kinds: type) -> list[Any]:
        values: list[Any] = self._get(key, list)
        if not {*map(type, values)} <= {*kinds}:
            raise self.error(key, "holds values of a wrong kind")
        return values

    def _one_each(self, key: str, *kinds: type) -> list[Any]:
        values = self._list(key, *kinds)
        if len(values) != len(self.tokens):
            raise self.error(key, f"holds {len(values)} values for {len(self.tokens)} tokens")
        return values

    def _checked_id(self, key: str, value: Any) -> int:
        if not isinstance(value, int) or not 0 <= value < len(self.tokens):
            raise self.error(key, f"is {value!r}, no ID of the {len(self.tokens)} tokens")
        return value
