"""The table of formats: who takes a completion apart, and who writes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from ringtrue.errors import UsageError
from toolcall_validator.families import (
    deepseek,
    glm,
    harmony,
    hermes,
    kimi,
    llama,
    minimax,
    mistral,
    pythonic,
    qwen,
)
from toolcall_validator.families.parsed import Parsed, RawCall, Schemas

Parser: TypeAlias = Callable[[str, Schemas], Parsed]
Renderer: TypeAlias = Callable[[Sequence[RawCall], str, str], str]


@dataclass(frozen=True, slots=True)
class Format:
    """One way of writing calls. ``leaks`` is the family's key in ``LEAKS``."""

    parse: Parser
    render: Renderer
    leaks: str


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "hermes": Format(hermes.LAYOUT.parse, hermes.render, "hermes"),
        "qwen": Format(qwen.LAYOUT.parse, hermes.render, "qwen"),
        "qwen_xml": Format(qwen.LAYOUT.parse, qwen.render, "qwen"),
        "kimi": Format(kimi.LAYOUT.parse, kimi.render, "kimi"),
        "deepseek": Format(deepseek.LAYOUT.parse, deepseek.render, "deepseek"),
        "deepseek_v3": Format(deepseek.LAYOUT.parse, deepseek.render_fenced, "deepseek"),
        "deepseek_dsml": Format(deepseek.LAYOUT.parse, deepseek.render_dsml, "deepseek"),
        "glm": Format(glm.LAYOUT.parse, glm.render, "glm"),
        "mistral": Format(mistral.LAYOUT.parse, mistral.render, "mistral"),
        "mistral_list": Format(mistral.LAYOUT.parse, mistral.render_list, "mistral"),
        "llama": Format(llama.LAYOUT.parse, llama.render, "llama"),
        "llama_pythonic": Format(pythonic.LAYOUT.parse, pythonic.render, "llama"),
        "harmony": Format(harmony.parse, harmony.render, "harmony"),
        "minimax": Format(minimax.LAYOUT.parse, minimax.render, "minimax"),
    }
)


def format_of(family: str) -> Format:
    """Return the format of that name.

    Raises:
        UsageError: there is none.
    """
    found = FORMATS.get(family)
    if found is None:
        raise UsageError(
            f"no tool-call format is named {family!r}",
            remedy=f"Known are {', '.join(FORMATS)}",
        )
    return found


def parse(family: str, text: str, schemas: Schemas | None = None) -> Parsed:
    """Take a raw completion apart, special tokens included, as the family's format means it.

    ``schemas`` are the ``parameters`` of the declared functions; formats that
    write values bare need them to tell 3 from "3". No text raises, and text
    without markers in front changes nothing but the content and the spans.

    Raises:
        UsageError: the family is unknown.
    """
    return format_of(family).parse(text, schemas or {})


def render(family: str, calls: Sequence[RawCall], content: str = "", reasoning: str = "") -> str:
    """Return an assistant's turn as the family's template writes it.

    It begins after the generation prompt and leaves out the token that ends
    the turn, which servers cut. Formats that hold JSON write the arguments
    verbatim, broken ones too.

    Raises:
        UsageError: the family is unknown, or the format can't hold the arguments.
    """
    return format_of(family).render(calls, content, reasoning)
