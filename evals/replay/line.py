"""One line of a recorded series: who answered when, in which batch, and what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from logprob_drift.alignment import Aligned, align
from logprob_drift.vocabulary import Vocabulary
from ringtrue.records import Position, TokenLogprob

LARGEST = 1e30  # of a value: its square must stay a number
CONTENTS = ("top_logprobs", "text", "value")
_YEARS = (datetime(1970, 1, 1, tzinfo=UTC).timestamp(), datetime(9999, 12, 31, tzinfo=UTC).timestamp())
_NOBODY = TokenLogprob("", 0.0, token_id=-1)  # a recorded row doesn't say which token was sampled


class BadLineError(ValueError):
    """Why a line can't be used."""


@dataclass(frozen=True, slots=True)
class Row:
    """A top-k row: token numbers of one `Names`, and their logprobs in nats, best first."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One recorded answer.

    ``at`` is in seconds since 1970. ``prompt`` is "" where the line names none,
    and ``metric`` where the content is no value.
    """

    endpoint: str
    at: float
    batch: str
    prompt: str
    metric: str
    content: Row | str | float


class Names:
    """Numbers the tokens of a recording in the order of their appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Return the number of a token's name, a new one for a new name."""
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def vocabulary(self) -> Vocabulary:
        """What tells the numbers given so far from others."""
        return Vocabulary(len(self._numbers), {})


def parse_line(raw: bytes, names: Names) -> Line:
    """Read one line of the form that ``ringtrue replay --help`` describes.

    Raises:
        BadLineError: the line is not in this form; the message says why.
    """
    body = _object(raw)
    given = [name for name in CONTENTS if body.get(name) is not None]
    if len(given) != 1:
        raise BadLineError(f"needs exactly one of {', '.join(CONTENTS)}; there are {len(given)}")
    endpoint = body.get("endpoint")
    if not isinstance(endpoint, str) or not endpoint:
        raise BadLineError("endpoint must be a name")
    at = _seconds(body.get("t"))
    metric = body.get("metric", "value") if given[0] == "value" else ""
    if not isinstance(metric, str):
        raise BadLineError("metric must be a name")
    return Line(
        endpoint=endpoint,
        at=at,
        batch=_batch(body.get("batch"), at),
        prompt=_prompt(body.get("prompt")),
        metric=metric,
        content=_content(given[0], body[given[0]], names),
    )


def _object(raw: bytes) -> Mapping[str, object]:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadLineError(f"no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadLineError("no JSON object")
    return body


def _seconds(value: object) -> float:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError as error:
            raise BadLineError(f"t is no ISO 8601 time: {value[:40]!r}") from error
        value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadLineError("t must be an ISO 8601 time or seconds since 1970")
    if not _YEARS[0] <= value <= _YEARS[1]:
        raise BadLineError(f"t is no time between 1970 and 9999: {value:g}; is it in seconds?")
    return float(value)


def _batch(value: object, at: float) -> str:
    if value is None:
        return datetime.fromtimestamp(at, UTC).date().isoformat()
    if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
        return str(value)
    raise BadLineError("batch must be a name or a number")


def _prompt(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _content(name: str, value: object, names: Names) -> Row | str | float:
    match name, value:
        case "text", str():
            return value
        case "value", int() | float() if abs(value) <= LARGEST:  # true and false are 1 and 0
            return float(value)
        case "top_logprobs", list():
            return _row(value, names)
    raise BadLineError(f"{name} has the wrong form")


def _row(entries: list[object], names: Names) -> Row:
    """Clean a row as one from the wire is cleaned, with the tokens' names in the place of IDs."""
    merged: dict[int, float] = {}
    for entry in entries:
        match entry:
            case [str(token), int() | float() as logprob] if not isinstance(logprob, bool):
                number = names.number(token)
                # Two tokens may have the same name once decoded: one cell then, with both probabilities.
                merged[number] = _sum(merged[number], logprob) if number in merged else float(logprob)
            case _:
                raise BadLineError("top_logprobs must be [[token, logprob], ...]")
    top = tuple(TokenLogprob("", logprob, token_id=number) for number, logprob in merged.items())
    found = align(Position(_NOBODY, top), names.vocabulary, asked=len(top))
    if not isinstance(found, Aligned):
        raise BadLineError(f"top_logprobs cannot be used: {found.value}")
    return Row(tuple(cell[0] for cell in found.cells), found.logprobs)


def _sum(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high))
