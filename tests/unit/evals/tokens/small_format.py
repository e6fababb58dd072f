"""A small real tokenizer with a template: what `ringtrue tokens` holds IDs against, in a few milliseconds."""

from __future__ import annotations

from evals.tokens.named_format import NamedFormat
from tests.unit.tokenizer_checks.small_vocabulary import SmallTokenizer
from tests.unit.tokenizer_checks.templates.sources import CHATML


class SmallFormat:
    """A `ringtrue.endpoint.PromptFormat` around `SmallTokenizer`."""

    def __init__(self, template: str | None = "{{ bos_token }}" + CHATML) -> None:
        self._tokenizer = SmallTokenizer()
        self.special_tokens = {"bos_token": "<s>", "eos_token": "<|im_end|>"}
        vocabulary = self._tokenizer.vocabulary
        self.template = self.tool_template = template
        self.special_ids = vocabulary.special
        self.bos_id = vocabulary.bos
        self.end_ids = vocabulary.ends
        self.vocabulary_size = vocabulary.size or 0
        self.decode = vocabulary.decode

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.unmarked(text))

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        assert not add_special_tokens  # a template writes its own
        return tuple(self._tokenizer.ids(text))


def small_format(template: str | None = "{{ bos_token }}" + CHATML, name: str = "small") -> NamedFormat:
    return NamedFormat(name, SmallFormat(template))
