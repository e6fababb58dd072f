"""The 70 real templates, each with a real vocabulary and with its own markers as control tokens."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from reference_engine.models.codec import TokenCodec
from reference_engine.tokenizers.opening import open_tokenizer
from tests.material import template_folder, vocabulary_folder
from tokenizer_checks.templates.chat import Chat, Prompt
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.model import ModelPrompts
from tokenizer_checks.templates.mutators.mutator import marker_pattern

TABLE = Path(__file__).parent.parent / "template_models.toml"
EVERYWHERE = ("<|endoftext|>", "</s>")  # control tokens of nearly every vocabulary


@dataclass(frozen=True, slots=True)
class RealModel:
    """A template's file without its ending, the vocabulary it is read with, and its markers.

    ``own`` says that the vocabulary is the model family's, and no stand-in.
    """

    name: str
    vocabulary: str
    own: bool
    bos: str
    eos: str
    markers: tuple[str, ...]

    @property
    def template(self) -> str:
        """The source of the template.

        Raises:
            ModelError: the material is not fetched.
        """
        return (template_folder() / f"{self.name}.jinja").read_text(encoding="utf-8")

    def special(self) -> Mapping[str, str]:
        """The named special tokens that the template may write."""
        named = {"bos_token": self.bos, "eos_token": self.eos}
        return {name: text for name, text in named.items() if text}


def real_models(table: Path = TABLE) -> tuple[RealModel, ...]:
    """Return all 70, sorted by name."""
    rows = tomllib.loads(table.read_text(encoding="utf-8"))
    return tuple(
        RealModel(name, row["vocabulary"], row["own"], row["bos"], row["eos"], tuple(row.get("markers", ())))
        for name, row in rows.items()
    )


@cache
def vocabulary(name: str) -> TokenCodec:
    """Return one of the fetched vocabularies, opened once in this process."""
    return open_tokenizer(vocabulary_folder() / f"ggml-vocab-{name}.gguf")


def with_own_markers(codec: TokenCodec, model: RealModel) -> TokenCodec:
    """Return a vocabulary with all markers that the model's template writes, and with the template."""
    day = datetime(2000, 1, 1)  # noqa: DTZ001 - a prompt has one, and no marker depends on it
    prompt = Prompt(model.template, Chat(()), day, model.special())
    found = marker_pattern(prompt).findall(model.template)
    markers = sorted({*found, *model.markers, *model.special().values(), *EVERYWHERE})
    return codec.with_markers(markers, model.special()).with_template(model.template)


class RememberingRenderer(Renderer):
    """Renders a prompt object once while it is in use: judges ask for an honest text again and again."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[tuple[Prompt, str]] = []

    def render(self, prompt: Prompt) -> str:
        """Return the prompt's text."""
        text = next((text for kept, text in self._texts if kept is prompt), None)
        text = super().render(prompt) if text is None else text
        self._texts = [(prompt, text), *(one for one in self._texts if one[0] is not prompt)][:2]
        return text


class RememberingFormat:
    """A codec that tokenizes a text once; all else is the codec's."""

    def __init__(self, codec: TokenCodec) -> None:
        self._codec = codec
        self.encode = lru_cache(4096)(codec.encode)
        self.encode_prompt = lru_cache(4096)(codec.encode_prompt)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)


def prompts_of(model: RealModel) -> ModelPrompts:
    """Return the model's prompts, rendered and tokenized by what remembers."""
    return ModelPrompts(
        RememberingFormat(with_own_markers(vocabulary(model.vocabulary), model)),
        name=model.name,
        renderer=RememberingRenderer(),
    )
