"""How servers want a question to be put: one class a dialect, one table of them."""

from __future__ import annotations

import difflib
from types import MappingProxyType

from probes.dialects.dialect import Dialect
from probes.dialects.fireworks import FireworksDialect
from probes.dialects.llama_cpp import LlamaCppDialect
from probes.dialects.llama_cpp_python import LlamaCppPythonDialect
from probes.dialects.ollama import OllamaDialect
from probes.dialects.openai import OpenAIDialect
from probes.dialects.sglang import SglangDialect
from probes.dialects.tgi import TgiDialect
from probes.dialects.together import TogetherDialect
from probes.dialects.vllm import VllmDialect
from ringtrue.errors import ConfigError

_ALL: tuple[Dialect, ...] = (
    OpenAIDialect(),
    VllmDialect(),
    SglangDialect(),
    LlamaCppDialect(),
    LlamaCppPythonDialect(),
    TgiDialect(),
    FireworksDialect(),
    TogetherDialect(),
    OllamaDialect(),
)

DIALECTS = MappingProxyType({dialect.name: dialect for dialect in _ALL})


def dialect_named(name: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        ConfigError: there is none; the message lists those there are.
    """
    if name in DIALECTS:
        return DIALECTS[name]
    close = difflib.get_close_matches(name, DIALECTS, n=1)
    known = ", ".join(sorted(DIALECTS))
    raise ConfigError(
        f"unknown dialect {name!r}",
        where="dialect",
        remedy=f"Did you mean {close[0]!r}? There are: {known}" if close else f"There are: {known}",
    )


__all__ = ["DIALECTS", "Dialect", "dialect_named"]
