"""Which of a border input's tokens an answer began with."""

from __future__ import annotations

from evals.parts.token_names import token_id_of
from probes.border_search import BorderInput
from ringtrue.records import Exchange


def first_token(exchange: Exchange, border: BorderInput) -> int | None:
    """Return the place of the answer's first token in ``border.tokens``, or their number for any other.

    By its ID where the server gives one, else by the text, with white space
    around it left aside: some servers strip it. ``None`` where no text tells,
    because there is none (it may be in a field of its own, or have been
    white space) or because it is half a character.
    """
    other = len(border.tokens)
    token = token_id_of(exchange)
    if token is not None:
        return border.tokens.index(token) if token in border.tokens else other
    text = exchange.text.strip()
    if not text or "\ufffd" in text:
        return None
    counted = exchange.usage.completion_tokens if exchange.usage else None
    for place, expected in enumerate(border.texts):
        # A server that gives more tokens than it was asked for is read by its text's beginning.
        if text == expected or (counted != 1 and expected and text.startswith(expected)):
            return place
    return other
