"""Exchanges read into the columns that the judge of answers takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from logprob_drift.token_only.answers import Answers
from logprob_drift.token_only.foreign_letters import foreign
from logprob_drift.token_only.lengths import CAPPED
from logprob_drift.token_only.loops import floods, loops
from ringtrue.endpoint import Reference
from ringtrue.records import Exchange

_UNSEEN = 2  # tokens that an answer without text may have: end of turn, end of text


@dataclass(frozen=True, slots=True)
class _Read:
    """One exchange. ``length`` and ``reasoning`` in tokens, ``None`` where unknown."""

    length: int | None
    reasoning: int | None
    silent: bool
    empty: bool
    lost: bool


def columns_of(
    exchanges: Sequence[Exchange], index: Mapping[str, int], reference: Reference, *, cap: int
) -> Answers:
    """Return the columns of answered ``exchanges``, whose request IDs ``index`` maps to questions.

    Tokens are counted by the server. An answer whose count is missing has an
    unknown length. Reasoning that the server shows but does not count is
    counted by the reference's tokenizer; where neither is there, its share
    is unknown and the whole count is the answer's.
    """
    read = [_read(exchange, reference, cap) for exchange in exchanges]
    said = [exchange.text if exchange.text.strip() else exchange.reasoning for exchange in exchanges]
    return Answers(
        question=np.array([index[exchange.request.id] for exchange in exchanges], dtype=np.int64),
        length=_numbers([one.length for one in read]),
        reasoning=_numbers([one.reasoning for one in read]),
        finish_reasons=tuple(exchange.finish_reason for exchange in exchanges),
        silent=np.array([one.silent for one in read], dtype=np.bool_),
        empty=np.array([one.empty for one in read], dtype=np.bool_),
        lost=np.array([one.lost for one in read], dtype=np.bool_),
        looping=np.array([loops(text) for text in said], dtype=np.bool_),
        flooded=np.array(
            [floods(text, e.token_ids or ()) for text, e in zip(said, exchanges, strict=True)], dtype=np.bool_
        ),
        foreign=np.array([foreign(exchange.text) for exchange in exchanges], dtype=np.bool_),
    )


def _read(exchange: Exchange, reference: Reference, cap: int) -> _Read:
    counted = exchange.usage.completion_tokens if exchange.usage else None
    reasoning = _reasoning(exchange, reference, counted)
    cut = exchange.finish_reason in CAPPED or (counted is not None and counted >= cap)
    blank = not exchange.text.strip()
    # Nothing at all may be reasoning that is not shown; white space up to the cap is an empty answer.
    silent = cut and blank and not exchange.tool_calls and (not exchange.text or bool(exchange.reasoning))
    empty = blank and not silent
    rest = None if counted is None else max(counted - (reasoning or 0), 0)
    return _Read(
        length=0 if blank else rest,
        reasoning=reasoning,
        silent=silent,
        empty=empty,
        lost=empty and (bool(exchange.tool_calls) or (not exchange.text and (rest or 0) > _UNSEEN)),
    )


def _reasoning(exchange: Exchange, reference: Reference, counted: int | None) -> int | None:
    if exchange.usage is not None and exchange.usage.reasoning_tokens is not None:
        return exchange.usage.reasoning_tokens
    if not exchange.reasoning or counted is None:
        return None
    return min(len(reference.encode(exchange.reasoning)), counted)


def _numbers(values: Sequence[int | None]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array([np.nan if value is None else float(value) for value in values])
