"""The two seams behind which all measuring happens: an endpoint, and the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringtrue.records import EndpointSpec, Exchange, Failure, Request

LogprobRow = NDArray[np.float32]
"""Log-probabilities of the next token over the whole vocabulary: shape [vocabulary], nats."""


@dataclass(frozen=True, slots=True)
class Forced:
    """What a model says of the tokens of a given continuation, one row a token.

    ``chosen`` [rows] are the logprobs (nats) of the tokens that stand there;
    ``top_ids`` and ``top`` [rows, k] the k likeliest tokens and their
    logprobs, best first, ties by the lower ID.
    """

    chosen: NDArray[np.float32]
    top_ids: NDArray[np.int64]
    top: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a route that is not a completion.

    ``body`` is the parsed JSON, ``None`` with ``error`` set when there is none.
    """

    status: int | None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Failure | None = None


class Endpoint(Protocol):
    """The only network seam: every request of every probe goes through it."""

    @property
    def spec(self) -> EndpointSpec:
        """The endpoint's description."""

    async def send(self, request: Request) -> Exchange:
        """Send one request, retries included, and return what happened.

        Never raises for anything the network or the server does:
        ``Exchange.error`` says what went wrong.
        """

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        """Call a plain JSON route, one try. ``path`` is relative to the server's root."""

    async def aclose(self) -> None:
        """Close all connections."""


class PromptFormat(Protocol):
    """How a model's prompts are written: its chat template and its tokenizer."""

    @property
    def template(self) -> str | None:
        """The source of the chat template, ``None`` if the model has none."""

    @property
    def tool_template(self) -> str | None:
        """The one for requests with tools, where the model has two; else the same."""

    @property
    def special_tokens(self) -> Mapping[str, str]:
        """The named special tokens as text: ``bos_token``, ``eos_token``, ..."""

    @property
    def special_ids(self) -> frozenset[int]:
        """The IDs of all control and added tokens, also those that answers show."""

    @property
    def bos_id(self) -> int | None:
        """The ID that begins a sequence."""

    @property
    def end_ids(self) -> frozenset[int]:
        """The IDs that end a turn or an answer."""

    @property
    def vocabulary_size(self) -> int:
        """One more than the greatest ID there can be."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokenize plain text; special tokens in it stay text, none is added."""

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """Tokenize a prompt as servers do: special tokens in it count as such."""

    def decode(self, ids: Sequence[int]) -> str:
        """Turn token IDs into text, special tokens included."""


class Reference(PromptFormat, Protocol):
    """The truth: one model whose weights, template and tokenizer we hold."""

    @property
    def model(self) -> str:
        """The model's name, variant included."""

    @property
    def fingerprint(self) -> str:
        """A hash of weights, tokenizer and template."""

    @property
    def context_length(self) -> int:
        """The longest sequence the model takes, in tokens."""

    @property
    def vocabulary_size(self) -> int:
        """The length of a logprob row."""

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes one token stands for."""

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> tuple[int, ...]:
        """The token IDs of a chat with the generation prompt, by the model's own template."""

    def on_day(self, now: datetime) -> Reference:
        """The same model, whose template finds ``now`` on the clock; only ``render`` differs."""

    async def next_token(self, ids: Sequence[int]) -> LogprobRow:
        """Exact float32 logprobs of the token after ``ids``."""

    async def jittered(self, ids: Sequence[Sequence[int]], *, dtype: str, seed: int) -> list[LogprobRow]:
        """Logprobs after each sequence as an honest server would compute them.

        Computed in ``dtype`` (``bf16``, ``fp16``, ``fp32``) with batch
        composition and prefill chunks drawn from ``seed``. One row a sequence,
        in the order given: the raw material of the noise floor
        (docs/methods.md, "Noise floor").
        """

    async def forced(
        self, prompt: Sequence[int], continuation: Sequence[int], *, k: int, dtype: str
    ) -> Forced:
        """What the model, computed in ``dtype``, says of each token of ``continuation`` after ``prompt``.

        One forward pass over both (teacher forcing). ``prompt`` has at least
        one token.
        """

    async def greedy(self, prompt: Sequence[int], *, max_tokens: int, dtype: str) -> tuple[int, ...]:
        """The tokens that the model, computed in ``dtype``, likes best after ``prompt``, one after the other.

        At most ``max_tokens``; the one that ends the answer is the last.
        """
