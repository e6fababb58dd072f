"""Text to token IDs and back, by the model's own tokenizer and chat template."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ringtrue.errors import ModelError
from tokenizer_checks.templates.chat import Chat, Prompt
from tokenizer_checks.templates.environment import Renderer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_SPACE = "\u2581"  # how SentencePiece writes a space

# Tokenizers name one token that ends; turns often end in another. The texts are those by which
# llama.cpp knows tokens that end a turn (``llama_vocab::impl::load``), and newer models' beside them.
_ENDS = frozenset(
    {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<turn|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|eom_id|>",
        "<|END_OF_TURN_TOKEN|>",
        "<|end_of_turn|>",
        "<|end_of_role|>",
        "<|user_end|>",
        "<|eot|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "</s>",
        "<end_of_utterance>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    }
)


class TokenCodec:
    """One tokenizer with its chat template: a `ringtrue.endpoint.PromptFormat`.

    Everything it returns is a pure function of its arguments, and of the day
    where a template writes it and no day is given.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer
        self._added = {token_id: text for text, token_id in tokenizer.get_added_vocab().items()}
        self._special = frozenset(tokenizer.all_special_ids)
        part = tokenizer.backend_tokenizer.decoder
        decoder = {} if part is None else json.loads(part.__getstate__())  # the whole takes a second to write
        kinds = {part["type"] for part in decoder.get("decoders", [decoder]) if part}
        self._bytes_of_char = _byte_level_table() if "ByteLevel" in kinds else None
        self._byte_fallback = "ByteFallback" in kinds
        self._renderer = Renderer()

    @property
    def bos_id(self) -> int | None:
        """The ID that begins a sequence, ``None`` if the model has none."""
        token_id = self._tokenizer.bos_token_id
        return token_id if isinstance(token_id, int) else None

    @property
    def bos_text(self) -> str | None:
        """The text of ``bos_id``."""
        return None if self.bos_id is None else str(self._tokenizer.bos_token)

    @property
    def eos_id(self) -> int | None:
        """The ID that ends an answer by the tokenizer's word."""
        token_id = self._tokenizer.eos_token_id
        return token_id if isinstance(token_id, int) else None

    @property
    def template(self) -> str | None:
        """The source of the chat template, ``None`` if the model has none."""
        return self._template_named("default")

    @property
    def tool_template(self) -> str | None:
        """The one for requests with tools, where the model has two; else the same."""
        return self._template_named("tool_use")

    @cached_property
    def special_tokens(self) -> Mapping[str, str]:
        """The named special tokens as text: ``bos_token``, ``eos_token``, ..."""
        named: Mapping[str, Any] = self._tokenizer.special_tokens_map  # some hold lists
        return {name: str(text) for name, text in named.items() if isinstance(text, str)}

    @property
    def special_ids(self) -> frozenset[int]:
        """The IDs of all control and added tokens, also those that answers show."""
        return self._special | self._added.keys()

    @cached_property
    def end_ids(self) -> frozenset[int]:
        """The IDs that end a turn or an answer: the tokenizer's own, and those with the text of one."""
        ends = {token_id for token_id, text in self._added.items() if text in _ENDS}
        return frozenset(ends if self.eos_id is None else {*ends, self.eos_id})

    @cached_property
    def vocabulary_size(self) -> int:
        """One more than the greatest ID that the tokenizer knows."""
        return max(self.tokens(), default=-1) + 1

    def with_template(self, template: str) -> TokenCodec:
        """Return the same tokenizer with another chat template; this one stays as it is."""
        tokenizer = copy.copy(self._tokenizer)
        tokenizer.chat_template = template
        return TokenCodec(tokenizer)

    def with_markers(self, markers: Sequence[str], named: Mapping[str, str]) -> TokenCodec:
        """Return the same tokenizer with more control tokens, and with these as its named special tokens.

        A marker that the vocabulary has keeps its ID; the others get the next
        free ones. This one stays as it is.
        """
        from tokenizers import AddedToken  # noqa: PLC0415 - whoever opened the tokenizer has loaded it

        tokenizer = copy.deepcopy(self._tokenizer)
        tokenizer.add_tokens([AddedToken(text, special=True, normalized=False) for text in markers])
        for name in (set(named) | set(self.special_tokens)) & {"bos_token", "eos_token"}:
            setattr(tokenizer, name, named.get(name))
        return TokenCodec(tokenizer)

    def tokens(self) -> dict[int, str]:
        """The token behind every ID that the tokenizer knows, as its file spells it."""
        return {token_id: token for token, token_id in self._tokenizer.get_vocab().items()}

    def vocabulary_hash(self) -> str:
        """The sha256 of the map from token to ID, as 64 hex digits.

        Equal for two tokenizers that give every ID the same meaning, however
        their files are laid out.
        """
        return hashlib.sha256(json.dumps(sorted(self.tokens().items())).encode()).hexdigest()

    def template_hash(self) -> str | None:
        """The sha256 of the chat template's text, as 64 hex digits; ``None`` if the model has none."""
        template = self._tokenizer.chat_template
        if not template:
            return None
        text = template if isinstance(template, str) else json.dumps(template, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def is_special(self, token_id: int) -> bool:
        """Whether the ID is a control token, which answers do not show."""
        return token_id in self._special

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokenize plain text; special tokens in it stay text, none is added."""
        encoded = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return tuple(encoded["input_ids"])

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """Tokenize a prompt as servers do: special tokens in it count as such."""
        encoded = self._tokenizer(text, add_special_tokens=add_special_tokens, split_special_tokens=False)
        return tuple(encoded["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        """Turn token IDs into text, special tokens included."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes one token stands for; none for an ID that the tokenizer does not use."""
        if token_id in self._added:
            return self._added[token_id].encode()
        token = self._tokenizer.convert_ids_to_tokens(int(token_id))  # NumPy integers are no int to it
        if not isinstance(token, str):
            return b""
        if self._bytes_of_char is not None:
            return bytes(self._bytes_of_char[char] for char in token)
        if self._byte_fallback and len(token) == len("<0x00>") and token.startswith("<0x"):
            return bytes([int(token[3:5], 16)])
        return token.replace(_SPACE, " ").encode()

    def render_text(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        generation_prompt: bool = True,
        now: datetime | None = None,
    ) -> str:
        """The text of a chat by the model's own template; ``now`` is what its clock shows.

        Raises:
            ModelError: the model has no template, the template refuses the
                messages, or it goes beyond its bounds.
        """
        chat = Chat(
            messages=tuple(messages),
            tools=tuple(tools) if tools else None,
            generation_prompt=generation_prompt,
        )
        return self.render_chat(chat, now)

    def render_chat(self, chat: Chat, now: datetime | None = None) -> str:
        """The text of a chat with all that its request may ask for; else as ``render_text``."""
        template = self.tool_template if chat.tools else self.template
        if not template:
            raise ModelError("the model has no chat template", remedy="Use the completions route")
        # As transformers: the wall clock of this machine, in its own time zone.
        day = datetime.now() if now is None else now  # noqa: DTZ005
        return self._renderer.render(Prompt(template, chat, day, self.special_tokens))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        generation_prompt: bool = True,
        now: datetime | None = None,
    ) -> tuple[int, ...]:
        """The token IDs of ``render_text``; the template writes its own special tokens.

        Raises:
            ModelError: as ``render_text``.
        """
        text = self.render_text(messages, tools, generation_prompt=generation_prompt, now=now)
        return self.encode_prompt(text, add_special_tokens=False)

    def _template_named(self, name: str) -> str | None:
        template = self._tokenizer.chat_template
        if isinstance(template, Mapping):  # a model with one template for tools, one for all else
            template = template.get(name) or template.get("default")
        return str(template) if template else None


def _byte_level_table() -> dict[str, int]:
    """The byte each character of a byte-level BPE token stands for (GPT-2's ``bytes_to_unicode``, inverted).

    Printable bytes stand for themselves, the others for the characters from U+0100 on, in order.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(rest)}
