"""The token IDs that a server makes of a chat, by every way its dialect knows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from probes.dialects import DIALECTS, Dialect, dialect_named
from probes.dialects.shown import Shown
from probes.dialects.ways import Asking
from ringtrue.endpoint import Endpoint
from ringtrue.errors import UsageError
from tokenizer_checks.alignment import shared_head
from tokenizer_checks.metamorphic import Relation, count_is_length, routes_agree
from tokenizer_checks.templates.chat import Chat
from tokenizer_checks.templates.spellings import on_wire


async def show(
    endpoint: Endpoint,
    chat: Chat,
    *,
    ways: Collection[str] | None = None,
    id: str = "prompt",  # noqa: A002 - a request's own word
    vocabulary_size: int | None = None,
) -> tuple[Shown, ...]:
    """Return what each way of the endpoint's dialect shows of the chat's prompt, in the dialect's order.

    ``ways`` names those to ask; names of ways that only other dialects have
    are left out. One request of one token goes out for each, one after the
    other, since later ones send what earlier ones showed. IDs at or above
    ``vocabulary_size`` are no IDs.

    A refusal, a missing route, an answer without IDs or with something else in
    their place becomes the ``problem`` of its way, and the others are asked.

    Raises:
        UsageError: no dialect has a way of one of these names.
    """
    _require_known(ways)
    asking = Asking(endpoint, on_wire(chat), id, vocabulary_size)
    for way in dialect_named(endpoint.spec.dialect).ways:
        if ways is None or way.name in ways:
            asking = replace(asking, earlier=(*asking.earlier, await way.show(asking)))
    return asking.earlier


async def tokenize(endpoint: Endpoint, text: str, *, vocabulary_size: int | None = None) -> Shown:
    """Return the IDs that the server's own route makes of ``text``; markers in it are control tokens.

    TGI's and llama-cpp-python's routes add a BOS where the tokenizer asks for
    one, the others add nothing. A server without such a route has a ``problem``.
    """
    route = dialect_named(endpoint.spec.dialect).text_route
    if route is None:
        problem = f"the dialect {endpoint.spec.dialect} knows no route that tokenizes text"
        return Shown("tokenize_text", False, None, None, text, problem)
    return await route.show(endpoint, text, vocabulary_size=vocabulary_size)


def rendering_ways(dialect: Dialect) -> frozenset[str]:
    """Return the ways by which a server shows the IDs of a chat without its model being asked to answer."""
    return frozenset(way.name for way in dialect.ways if not way.generates)


def best(shown: Sequence[Shown]) -> Shown | None:
    """Return what tells most: used IDs, else rendered ones, else a count; ``None`` where nothing is told.

    Of several the first, which is the dialect's best way.
    """
    used = (one for one in shown if one.ids is not None and one.used)
    rendered = (one for one in shown if one.ids is not None)
    counted = (one for one in shown if one.count is not None)
    return next(used, None) or next(rendered, None) or next(counted, None)


def invariants(shown: Sequence[Shown]) -> tuple[Relation, ...]:
    """Judge what must hold between the ways of one server: ``count``, ``routes`` and ``rendered``.

    As many IDs are shown as prompt tokens are counted, on every way and
    between ways; every way shows the same IDs; what routes say the server
    would use is what it used. What the ways can't tell has ``kept`` ``None``.
    """
    by_way = {one.way: one.ids for one in shown if one.ids is not None}
    return (*_counts(shown), routes_agree(by_way), _rendered(shown))


def _counts(shown: Sequence[Shown]) -> tuple[Relation, ...]:
    told = [
        (one.way, count_is_length(one.ids, one.count))
        for one in shown
        if one.ids is not None and one.count is not None
    ]
    blind = next((one for one in shown if one.used and one.ids is None and one.count is not None), None)
    if blind is not None:  # what was used is only counted: hold the count against IDs shown elsewhere
        told += [
            (f"{one.way} against {blind.way}", count_is_length(one.ids, blind.count))
            for one in shown
            if one.ids is not None
        ]
    if not told:
        return (count_is_length(None, None),)
    return tuple(replace(relation, sentence=f"{name}: {relation.sentence}") for name, relation in told)


def _rendered(shown: Sequence[Shown]) -> Relation:
    used = next((one for one in shown if one.used and one.ids is not None), None)
    others = [one for one in shown if not one.used and one.ids is not None]
    if used is None or used.ids is None or not others:
        return Relation("rendered", None, "not both used and rendered IDs were shown")
    for other in others:
        if other.ids is not None and other.ids != used.ids:
            at = shared_head(used.ids, other.ids)
            words = f"{other.way} shows other IDs than {used.way} used, from token {at:,} on"
            return Relation("rendered", False, words, at)
    names = ", ".join(other.way for other in others)
    return Relation("rendered", True, f"{names}: the IDs that {used.way} used")


def _require_known(ways: Collection[str] | None) -> None:
    known = {way.name for dialect in DIALECTS.values() for way in dialect.ways}
    unknown = sorted(set(ways or ()) - known)
    if unknown:
        raise UsageError(
            f"there is no way named {unknown[0]!r} to be shown a prompt",
            where="ways",
            remedy=f"There are: {', '.join(sorted(known))}",
        )


__all__ = ["Shown", "best", "invariants", "rendering_ways", "show", "tokenize"]
