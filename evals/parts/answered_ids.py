"""The token IDs behind an answer: of its prompt, and of what was generated."""

from __future__ import annotations

from collections.abc import Sequence

from ringtrue.endpoint import Reference
from ringtrue.records import Exchange
from tokenizer_checks.comparison import compare


def same_ids(exchange: Exchange, expected: Sequence[int]) -> bool | None:
    """Return whether the server used the ``expected`` prompt IDs; ``None`` where nothing shows it.

    Known from the IDs that it returned, else from its count of prompt tokens.
    """
    usage = exchange.usage
    return compare(expected, exchange.prompt_token_ids, usage.prompt_tokens if usage else None).same


def generated_ids(exchange: Exchange, reference: Reference) -> tuple[int, ...] | None:
    """Return the IDs of the generated tokens, or ``None`` where they can't be told.

    The server's own where it gives them, else those of its logprobs' sampled
    tokens, else the text by the reference's tokenizer, if that makes as many
    tokens as the server counted. An end-of-text token is among them only
    where the server listed it.
    """
    if exchange.error is not None:
        return None
    if exchange.token_ids is not None:
        return exchange.token_ids
    positions = exchange.top_logprobs or ()
    sampled = [position.sampled.token_id for position in positions]
    if sampled and all(token is not None for token in sampled):
        return tuple(token for token in sampled if token is not None)
    counted = exchange.usage.completion_tokens if exchange.usage else None
    ids = reference.encode(exchange.text)
    # A server counts the end-of-text token too, which has no text.
    ended = 1 if exchange.finish_reason == "stop" else 0
    return ids if ids and counted in {len(ids), len(ids) + ended} else None
