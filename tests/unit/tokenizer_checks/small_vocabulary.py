"""A real byte-level tokenizer with markers, trained on a few sentences."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from tokenizer_checks.vocabulary import Vocabulary

MARKERS = ("<s>", "<|im_start|>", "<|im_end|>", "<think>", "<|user|>", "<|assistant|>", "<|system|>")
_CORPUS = (
    "You are a helpful assistant. system user assistant tool\nToday Date: 30 Nov 2026\n",
    '{"type": "function", "function": {"name": "get_weather", "description": "Get the weather", '
    '"parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}',
    "Why is the sky blue, and why is the sunset red? Pisa is a town in Tuscany. Name another town.",
)


class SmallTokenizer:
    """Encodes text with its markers read as such."""

    def __init__(self) -> None:
        self.plain = Tokenizer(models.BPE())
        self.plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.plain.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        )
        self.plain.train_from_iterator(_CORPUS, trainer)
        self._marked = Tokenizer.from_str(self.plain.to_str())
        self._marked.add_special_tokens([AddedToken(marker, normalized=False) for marker in MARKERS])
        ids = {marker: self._marked.token_to_id(marker) for marker in MARKERS}
        self.vocabulary = Vocabulary(
            lambda ids: self._marked.decode(list(ids), skip_special_tokens=False),
            frozenset(ids.values()),
            bos=ids["<s>"],
            ends=frozenset({ids["<|im_end|>"]}),
            size=self._marked.get_vocab_size(),
        )

    def ids(self, text: str) -> list[int]:
        """Return the IDs of a text."""
        return list(self._marked.encode(text, add_special_tokens=False).ids)

    def unmarked(self, text: str) -> list[int]:
        """Return the IDs of a text whose markers are read as plain text."""
        return list(self.plain.encode(text).ids)
