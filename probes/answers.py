"""Short questions whose answers are counted: the same ones every night, at a temperature that users have.

A fixed set of questions of our own (``texts/questions.txt``): some want a
word, some a sentence, some a paragraph, some a list. They are sampled, with a
seed of its own for every question and night: nights are then independent
draws, as the detector of nights assumes. At temperature 0 an endpoint would
repeat itself night by night, and small models loop more.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files

import numpy as np

from probes.dialects.dialect import Dialect
from ringtrue.errors import ConfigError
from ringtrue.records import Request, Sampling


class Want(StrEnum):
    """What kind of answer a question wants."""

    WORD = "word"
    SENTENCE = "sentence"
    PARAGRAPH = "paragraph"
    LIST = "list"


USUAL_TOKENS = {Want.WORD: 12, Want.SENTENCE: 35, Want.PARAGRAPH: 120, Want.LIST: 150}
"""About as many tokens as such an answer takes; it is exact for no model."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; ``id`` is its name in requests."""

    id: str
    want: Want
    messages: tuple[dict[str, str], ...]

    @property
    def usual(self) -> float:
        """The log number of tokens that an answer takes about."""
        return float(np.log(USUAL_TOKENS[self.want]))


def load_questions(count: int) -> tuple[Question, ...]:
    """Return the first ``count`` questions; the kinds take turns, so that each is there equally often.

    Raises:
        ConfigError: there are not so many, or less than one is asked for.
    """
    lines = files("probes").joinpath("texts", "questions.txt").read_text(encoding="utf-8").splitlines()
    if not 1 <= count <= len(lines):
        raise ConfigError(
            f"{count} questions were asked for, and there are {len(lines)}",
            where="parts.answers",
            remedy=f"Ask for 1 to {len(lines)}",
        )
    return tuple(_question(at, line) for at, line in enumerate(lines[:count]))


def to_requests(
    questions: Sequence[Question],
    *,
    cap: int,
    temperature: float | None,
    seed: int,
    night: int,
    dialect: Dialect,
) -> tuple[Request, ...]:
    """Ask every question once, each in a session of its own, for at most ``cap`` tokens.

    The seed of a question depends on ``seed``, ``night`` and the question
    alone. A ``temperature`` of ``None`` leaves the server's own.
    """
    return tuple(
        Request(
            id=question.id,
            messages=question.messages,
            sampling=Sampling(
                temperature=temperature, max_tokens=cap, seed=_seed_of(question, seed=seed, night=night)
            ),
            return_token_ids=dialect.returns_token_ids,
            session=question.id,
        )
        for question in questions
    )


def _question(at: int, line: str) -> Question:
    want, _, text = line.partition(": ")
    return Question(f"answer-{at:02d}-{want}", Want(want), ({"role": "user", "content": text},))


def _seed_of(question: Question, *, seed: int, night: int) -> int:
    words = np.random.SeedSequence([seed, night, zlib.crc32(question.id.encode())]).generate_state(1)
    return int(words[0]) & 0x7FFFFFFF  # what every server takes
