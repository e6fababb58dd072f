"""From a bare ``tokenizers.Tokenizer`` to one with named special tokens and a chat template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast


def wrapped(
    tokenizer: Tokenizer,
    named: Mapping[str, str],
    template: str | Mapping[str, str] | None = None,
    **frame: bool,
) -> PreTrainedTokenizerFast:
    """Return ``tokenizer`` as transformers holds one; its control tokens are its special ones.

    ``frame`` may hold ``add_bos_token`` and ``add_eos_token``; without them the
    tokenizer's own post-processor stays.
    """
    special = [token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special]
    options: dict[str, Any] = {**named, **frame}
    fast: Any = PreTrainedTokenizerFast
    held: PreTrainedTokenizerFast = fast(
        tokenizer_object=tokenizer,
        extra_special_tokens=[text for text in special if text not in set(named.values())],
        chat_template=template if template is None or isinstance(template, str) else dict(template),
        clean_up_tokenization_spaces=False,
        **options,
    )
    return held
