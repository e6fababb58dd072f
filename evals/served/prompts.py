"""Does a server turn chats and text into the model's own token IDs?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ringtrue.causes import Ids
from ringtrue.endpoint import Endpoint
from ringtrue.errors import MeasureError
from ringtrue.records import Request, Sampling
from tokenizer_checks.agreement import Agreement, Asked, agree
from tokenizer_checks.comparison import compare

# What templates get wrong: the default system turn, a given one, several turns, white space at the ends.
_CHATS = (
    (("user", "Name three colours."),),
    (("system", "Answer in one word."), ("user", "Is the sea salt?")),
    (("user", "Hello!"), ("assistant", "Hello. How can I help?"), ("user", "  Count to 3.\n\n")),
)
# What pre-tokenizers get wrong: digits, runs of spaces, marks, scripts without spaces, code.
_TEXTS = (
    "In 1789 and 2024, 3.14159 was 3.14159.",
    "  two spaces,\ttabs\n\n\nand  lines ",
    "It's naïve — «déjà vu» costs €5…",
    "學而時習之。不亦說乎 🙂 मानव",
    "def f(x):\n    return {'a': x[0]**2}  # done",
)


class Codec(Protocol):
    """The part of a model's tokenizer that is compared (``reference_engine.models.codec.TokenCodec``)."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokenize plain text, adding no special tokens."""

    def render(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        """The token IDs of a chat with the generation prompt, by the model's own template."""

    def template_hash(self) -> str | None:
        """Some hash of the template, ``None`` where the model has none."""


async def check_prompts(endpoint: Endpoint, codec: Codec) -> int:
    """Compare token IDs on a few chats and texts; return how many prompts had the model's own.

    The IDs are those that the generating routes say they used. Chats are left
    out where the model has no template.

    Raises:
        MeasureError: a prompt was answered with an error or without IDs, or
            other IDs were used: the first difference is named.
    """
    texts = [
        (
            Request(
                id=f"text {number}",
                prompt=text,
                sampling=Sampling(max_tokens=1),
                return_token_ids=True,
                extra={"add_special_tokens": False},
            ),
            codec.encode(text),
        )
        for number, text in enumerate(_TEXTS)
    ]
    await _compare(endpoint, texts, "tokenizer", "It tokenizes text as another model does")
    if codec.template_hash() is None:
        return len(texts)
    chats = []
    for number, turns in enumerate(_CHATS):
        messages = [{"role": role, "content": content} for role, content in turns]
        request = Request(
            id=f"chat {number}",
            messages=tuple(messages),
            sampling=Sampling(max_tokens=1),
            return_token_ids=True,
        )
        chats.append((request, codec.render(messages)))
    await _compare(endpoint, chats, "template", "Start it with the model's own chat template")
    return len(texts) + len(chats)


async def _compare(
    endpoint: Endpoint, cases: Sequence[tuple[Request, tuple[int, ...]]], what: str, remedy: str
) -> None:
    asked = []
    for request, expected in cases:
        exchange = await endpoint.send(request)
        if exchange.error is not None:
            raise MeasureError(exchange.error.message, where=f"{what} check, {request.id}")
        if exchange.prompt_token_ids is None:
            raise MeasureError(
                f"the server does not say which token IDs it used, so its {what} cannot be checked",
                where=f"{endpoint.spec.name}, {request.id}",
                remedy="Use a server that answers return_token_ids, as vLLM does",
            )
        asked.append(Asked(len(expected), compare(expected, exchange.prompt_token_ids, None)))
    agreement = agree(asked)
    if agreement.ids is not Ids.EQUAL:
        raise MeasureError(
            f"the server's {what} is not the model's: {_words(agreement)}",
            where=endpoint.spec.name,
            remedy=remedy,
        )


def _words(agreement: Agreement) -> str:
    said = f"other token IDs in {agreement.differing} of {agreement.seen} prompts"
    example = agreement.example
    if example is None:
        return said
    return (
        f"{said}; in the shortest {example.expected} tokens are due and {example.used} were used, "
        f"first difference at token {example.first}"
    )
