"""Statements about prompts whose token IDs were compared one by one: a layer each, and a relation each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ringtrue.causes import Ids, Symptoms, decide
from ringtrue.records import Cause, Check, Finding, Party, Severity
from tokenizer_checks.blame import Blame, Layer
from tokenizer_checks.difference import Difference
from tokenizer_checks.metamorphic import Relation
from tokenizer_checks.templates.mutators import MUTATORS

_LAYERS = {mutator.name: mutator.layer for mutator in MUTATORS}

NAMED = 8  # chats that a finding names; the others are counted

Differing = Mapping[str, tuple[Difference, Blame]]
"""The chats whose IDs differ, by name."""


@dataclass(frozen=True, slots=True)
class _Example:
    name: str
    found: Difference
    blame: Blame


@dataclass(frozen=True, slots=True)
class _Asked:
    chats: int
    counted: bool
    own: str


def difference_findings(
    endpoint: str,
    differing: Differing,
    *,
    chats: int,
    counted: bool = False,
    own: str = "the model's own",
) -> tuple[Finding, ...]:
    """Return one finding a layer, the one that touches most tokens first; none for no difference.

    ``chats`` is how many were compared, the equal ones included; with
    ``counted`` some of those were compared by their counts alone, so that more
    may differ. The value is the share of chats that differ by the layer, in
    [0, 1]. The shortest of them is the example, and the known faults that give
    exactly its IDs are narrowed to those that give all of them. ``own`` names
    what the IDs were held against. The evidence holds at most 64 IDs and no text.
    """
    layers: dict[Layer, list[_Example]] = {}
    everywhere = shared_faults([blame for _, blame in differing.values()])
    for name, (found, blame) in differing.items():
        layers.setdefault(layer_of(blame, everywhere), []).append(_Example(name, found, blame))
    most_first = sorted(layers, key=lambda layer: -sum(_tokens(one) for one in layers[layer]))
    return tuple(
        _layer_finding(endpoint, layer, layers[layer], _Asked(chats, counted, own)) for layer in most_first
    )


def layer_of(blame: Blame, everywhere: Sequence[str] = ()) -> Layer:
    """Return the layer of a prompt's difference: the known faults' where those that fit are of one layer.

    ``everywhere`` are the faults that fit in other prompts of the server too:
    they go before those that fit in this one alone. Without a fault that fits,
    or with some of several layers, it is the layer that was read from the place.
    """
    fitting = {_LAYERS[name] for name in everywhere or blame.mutations if name in _LAYERS}
    return fitting.pop() if len(fitting) == 1 else blame.layer


def relation_finding(endpoint: str, relation: Relation, *, party: Party) -> Finding:
    """Return what is to be said of one relation that does not hold, or does.

    ``party`` is who has to act where it is broken: a relation that the model's
    own template breaks as well is no fault of a server, and so no warning. One
    that could not be judged is unmeasured.
    """
    broken = relation.kept is False
    warns = broken and party is not Party.MODEL
    return Finding(
        endpoint=endpoint,
        check=Check.TOKENS,
        code=f"tokens.relation.{relation.name}",
        severity=Severity.WARN if warns else Severity.INFO,
        party=party if broken else Party.UNKNOWN,
        cause=Cause.PROMPT if broken else Cause.UNKNOWN,
        message=relation.sentence,
        measured=relation.kept is not None,
        n=0 if relation.kept is None else 1,
        evidence={} if relation.at is None else {"first": relation.at},
    )


def shared_faults(blames: Sequence[Blame]) -> tuple[str, ...]:
    """Return the known faults that give exactly the used IDs of every one of these prompts."""
    if not blames:
        return ()
    every = reduce(lambda kept, one: kept & one, (set(blame.mutations) for blame in blames))
    return tuple(sorted(every))


def _layer_finding(endpoint: str, layer: Layer, examples: Sequence[_Example], asked: _Asked) -> Finding:
    example = min(examples, key=lambda one: (len(one.found.expected), one.name))
    cause, alternatives = _cause(layer, examples)
    faults = shared_faults([one.blame for one in examples])
    message = f"other token IDs than {asked.own} in {len(examples)} of {asked.chats} chats"
    if asked.counted:
        message += " (of some only the counts were seen)"
    return Finding(
        endpoint=endpoint,
        check=Check.TOKENS,
        code=f"tokens.{layer}",
        severity=Severity.WARN,
        party=Party.PROVIDER,
        cause=cause,
        message=f"{message}: {example.blame.sentence}",
        alternatives=alternatives,
        metric="differing_chats",
        value=len(examples) / asked.chats if asked.chats else None,
        unit="share",
        n=asked.chats,
        evidence=_evidence(example, faults) | _chats(examples),
    )


def _cause(layer: Layer, examples: Sequence[_Example]) -> tuple[Cause, tuple[Cause, ...]]:
    """Return the cause: whether the answers depart too, and where a cut begins, is not known here."""
    if layer is Layer.TOKENIZER:
        return decide(Symptoms(ids=Ids.OTHER_VOCABULARY))
    if any(layer is Layer.TRUNCATION or Layer.TRUNCATION in one.blame.alternatives for one in examples):
        return Cause.PROMPT, (Cause.CONTEXT,)
    return Cause.PROMPT, ()


def _tokens(one: _Example) -> int:
    return sum(size for _, size in one.blame.layers)


def _evidence(example: _Example, faults: tuple[str, ...]) -> dict[str, Any]:
    found = example.found
    mine, theirs = found.expected_window, found.used_window
    return {
        "first": found.first,
        "expected_tokens": len(found.expected),
        "used_tokens": len(found.used),
        "missing": found.missing,
        "added": found.added,
        "expected_ids": list(mine.ids),
        "used_ids": list(theirs.ids),
        "window_start": mine.start,
        "window_sha256": _hash(mine.ids),
        "expected_sha256": _hash(found.expected),
        "used_sha256": _hash(found.used),
        "layers": [[str(layer), size] for layer, size in example.blame.layers[:NAMED]],
        "alternatives": [str(layer) for layer in example.blame.alternatives],
        "faults": list(faults),
    }


def _chats(examples: Sequence[_Example]) -> dict[str, Any]:
    named = sorted(one.name for one in examples)
    return {"chats": named[:NAMED], "more_chats": max(0, len(named) - NAMED)}


def _hash(ids: tuple[int, ...]) -> str:
    return hashlib.sha256(repr(ids).encode()).hexdigest()[:16]
