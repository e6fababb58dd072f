"""The server of llama-cpp-python, which is not llama.cpp's own.

Read from the source of version 0.3.36 and run against it. It renders no chat
for anybody to see; it closes a last message of the assistant, and ignores
options of the template and every other field that it doesn't know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.dialects.openai import counted
from probes.dialects.reading import at
from probes.dialects.shown import Found
from probes.dialects.ways import Generation, TextRoute, Way
from ringtrue.payload import to_body
from ringtrue.records import Request


@dataclass(frozen=True, slots=True)
class LlamaCppPythonDialect:
    """Counts, and the IDs of text; not those of a chat."""

    name: str = "llama_cpp_python"
    returns_token_ids: bool = False
    returns_prompt_logprobs: bool = False

    @property
    def ways(self) -> tuple[Way, ...]:
        """The count alone."""
        return (
            Generation("chat", counted, without="this server shows a count of prompt tokens, and no IDs"),
        )

    @property
    def text_route(self) -> TextRoute | None:
        """``/extras/tokenize``, which adds a BOS where the vocabulary asks for one."""
        return TextRoute("/extras/tokenize", lambda model, text: {"model": model, "input": text}, _tokenized)

    def body(self, request: Request, model: str) -> dict[str, Any]:
        """The common body."""
        return to_body(request, model)

    def cache_fields(self, key: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's
        """None: there is one cache of one prompt."""
        return ()


def _tokenized(body: Any) -> Found:
    return Found(at(body, "tokens"))
