"""The context curve: one next token after prompts of growing length, in several kinds of text.

The prompts are slices of committed public-domain text (``texts/SOURCES.md``),
sent as a single user message without a system message: a template that lost
its default system prompt then shows in the token IDs.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from probes.dialects import Dialect
from ringtrue.endpoint import Reference
from ringtrue.errors import ConfigError
from ringtrue.records import Request, Sampling

LANGUAGES = ("english", "code", "json", "cjk")

_TOLERANCE = 2  # tokens: at a slice's end a merge can swallow a token or two
_TRIES = 50


@dataclass(frozen=True, slots=True)
class CurvePrompt:
    """One prompt. ``bucket`` is the nominal length and ``text_tokens`` the content's, both in tokens."""

    id: str
    bucket: int
    language: str
    messages: tuple[dict[str, str], ...]
    text_tokens: int


def load_text(language: str) -> str:
    """The committed text of one kind.

    Raises:
        ConfigError: there is none of that name.
    """
    if language not in LANGUAGES:
        raise ConfigError(
            f"no text named {language!r}",
            where="probe.languages",
            remedy=f"There are: {', '.join(LANGUAGES)}",
        )
    return files("probes").joinpath("texts", f"{language}.txt").read_text(encoding="utf-8")


def build_prompts(
    reference: Reference,
    buckets: Sequence[tuple[int, int]],
    *,
    seed: int,
    languages: Sequence[str] = LANGUAGES,
    text_of: Callable[[str], str] = load_text,
) -> tuple[CurvePrompt, ...]:
    """Cut the prompts of all buckets, each a pair of length (tokens) and number of prompts.

    The content of a prompt is as long as its bucket says by the reference's
    tokenizer, within two tokens; it starts at a line and has no white space
    around it. Languages take turns; no two prompts are equal. The same
    arguments give the same prompts.

    Raises:
        ConfigError: a bucket does not fit the model's context or the texts.
    """
    overhead = len(reference.render([{"role": "user", "content": ""}]))
    longest = reference.context_length - overhead - 1
    for length, _ in buckets:
        if not 1 <= length <= longest:
            raise ConfigError(
                f"a bucket of {length} tokens does not fit: {reference.model} takes "
                f"{reference.context_length} tokens, of which the template needs {overhead} and the answer 1",
                where="probe.buckets",
                remedy=f"Use lengths from 1 to {longest}",
            )
    cutters = {language: _Cutter(reference, language, text_of(language)) for language in languages}
    rng = random.Random(seed)  # noqa: S311  a seeded choice of text, no cryptography
    turn = 0
    prompts: dict[str, CurvePrompt] = {}
    for length, number in buckets:
        for _ in range(number):
            prompt = _fresh_prompt(cutters[languages[turn % len(languages)]], length, rng, prompts)
            prompts[prompt.id] = prompt
            turn += 1
    return tuple(prompts.values())


def to_request(prompt: CurvePrompt, *, k: int | None, dialect: Dialect, stream: bool = False) -> Request:
    """Ask for one greedy token with the ``k`` best logprobs, and for the token IDs used where possible."""
    return Request(
        id=prompt.id,
        messages=prompt.messages,
        sampling=Sampling(temperature=0.0, max_tokens=1),
        logprobs=k,
        return_token_ids=dialect.returns_token_ids,
        stream=stream,
    )


def _fresh_prompt(
    cutter: _Cutter, length: int, rng: random.Random, taken: dict[str, CurvePrompt]
) -> CurvePrompt:
    for _ in range(_TRIES):
        content, tokens = cutter.cut(length, rng)
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        name = f"{length}-{cutter.language}-{digest}"
        if abs(tokens - length) <= _TOLERANCE and name not in taken:
            return CurvePrompt(name, length, cutter.language, ({"role": "user", "content": content},), tokens)
    raise ConfigError(
        f"the {cutter.language} text has too few different slices of {length} tokens",
        where="probe.buckets",
        remedy="Ask for fewer prompts of that length",
    )


class _Cutter:
    """Cuts slices of one text."""

    def __init__(self, reference: Reference, language: str, text: str) -> None:
        self.language = language
        self._reference = reference
        self._text = text
        self._lines = [0, *(at + 1 for at, character in enumerate(text[:-1]) if character == "\n")]
        # Enough characters for any token count: the mean of a long stretch, doubled when that falls short.
        stretch = text[: 1 << 16]
        self._per_token = len(stretch) / max(1, len(reference.encode(stretch)))

    def cut(self, length: int, rng: random.Random) -> tuple[str, int]:
        """A slice of about ``length`` tokens from a random line on, and its exact length in tokens."""
        reach = int(length * self._per_token * 1.25) + 64
        last = len(self._text) - reach
        starts = self._lines[: max(1, bisect_right(self._lines, last))]
        start = rng.choice(starts)
        end = min(len(self._text), start + reach)
        while self._tokens(start, end) < length and end < len(self._text):
            end = min(len(self._text), end + reach)
        return self._fit(start, end, length)

    def _fit(self, start: int, end: int, length: int) -> tuple[str, int]:
        """Bisect for the longest slice of at most ``length`` tokens; characters are never split."""
        short, long = start, end + 1
        while long - short > 1:
            middle = (short + long) // 2
            if self._tokens(start, middle) <= length:
                short = middle
            else:
                long = middle
        content = self._text[start:short].strip()
        return content, len(self._reference.encode(content))

    def _tokens(self, start: int, end: int) -> int:
        return len(self._reference.encode(self._text[start:end].strip()))
