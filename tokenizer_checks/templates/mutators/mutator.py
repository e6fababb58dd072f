"""One known fault of servers, as a change of what a prompt is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ringtrue.errors import ModelError
from tokenizer_checks.blame import Layer
from tokenizer_checks.templates.chat import Prompt
from tokenizer_checks.templates.environment import Renderer

_MARKER = re.compile(
    r"<\|[^|<>\s]{1,40}\|>|<\uff5c[^\uff5c<>\n]{1,40}\uff5c>|\[/?[A-Z][A-Z_]*\]|</?s>|<(?:start|end)_of_turn>"
)


class Encode(Protocol):
    """A tokenizer: text to IDs, control tokens in it read as such or as plain text; it adds none."""

    def __call__(self, text: str, *, parse_special: bool) -> Sequence[int]:
        """Return the IDs of the text."""
        ...


class Effect(StrEnum):
    """What a mutator did to one prompt."""

    CHANGED = "changed"
    NOTHING = "nothing"
    REFUSED = "refused"  # the template now raises: the server would answer with an error


def _same_prompt(prompt: Prompt) -> Prompt:
    return prompt


def _same_text(_: Prompt, text: str) -> str:
    return text


def _encoded(_: Prompt, text: str, encode: Encode) -> Sequence[int]:
    return encode(text, parse_special=True)


@dataclass(frozen=True, slots=True)
class Mutator:
    """A fault, the layer to blame for it, and the public issue that it reproduces.

    It works at one of three places: on the template and the request before
    rendering (``prompt``), on the rendered text (``text``), or on the way from
    text to IDs (``ids``).
    """

    name: str
    layer: Layer
    issue: str
    fault: str
    prompt: Callable[[Prompt], Prompt] = _same_prompt
    text: Callable[[Prompt, str], str] = _same_text
    ids: Callable[[Prompt, str, Encode], Sequence[int]] = _encoded


@dataclass(frozen=True, slots=True)
class MutatedText:
    """The text under a fault; ``None`` where the template refused, and then ``reason`` says why."""

    effect: Effect
    text: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MutatedIds:
    """The IDs under a fault; ``None`` where the template refused, and then ``reason`` says why."""

    effect: Effect
    ids: tuple[int, ...] | None
    reason: str | None = None


def mutate_text(mutator: Mutator, prompt: Prompt, renderer: Renderer) -> MutatedText:
    """Return the prompt's text under the fault; a fault of the tokenizer changes none.

    Raises:
        ModelError: the template refuses the prompt without any fault.
    """
    honest = renderer.render(prompt)
    try:
        text = mutator.text(prompt, renderer.render(mutator.prompt(prompt)))
    except ModelError as error:
        return MutatedText(Effect.REFUSED, None, str(error))
    return MutatedText(Effect.NOTHING if text == honest else Effect.CHANGED, text)


def mutate_ids(mutator: Mutator, prompt: Prompt, renderer: Renderer, encode: Encode) -> MutatedIds:
    """Return the prompt's token IDs under the fault.

    Raises:
        ModelError: the template refuses the prompt without any fault.
    """
    mutated = mutate_text(mutator, prompt, renderer)
    if mutated.text is None:
        return MutatedIds(Effect.REFUSED, None, mutated.reason)
    honest = tuple(encode(renderer.render(prompt), parse_special=True))
    ids = tuple(mutator.ids(prompt, mutated.text, encode))
    return MutatedIds(Effect.NOTHING if ids == honest else Effect.CHANGED, ids)


def marker_pattern(prompt: Prompt) -> re.Pattern[str]:
    """Return what finds the control tokens that the template writes, by their look or by name."""
    own = {match.group() for match in _MARKER.finditer(prompt.template)}
    own |= {value for value in prompt.special.values() if value}
    longest_first = sorted(own, key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def eos(prompt: Prompt) -> str:
    """Return the text of the token that ends a sequence; empty if the tokenizer has none."""
    return prompt.special.get("eos_token", "")
