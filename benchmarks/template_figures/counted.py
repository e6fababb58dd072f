"""What counts of prompt tokens alone tell: of one template's faults, and of vocabularies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from evals.tokens.library import chat_of
from reference_engine.models.codec import TokenCodec
from ringtrue.errors import ModelError
from tokenizer_checks.counts.asks import template_asks, tokenizer_asks
from tokenizer_checks.counts.consistency import Counts, consistent, undetectable
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.model import ModelPrompts
from tokenizer_checks.templates.mutators import MUTATORS, mutate_ids
from tokenizer_checks.templates.spellings import as_rendered

OWN = "the model's own"


@dataclass(frozen=True, slots=True)
class Counted:
    """One fault as counts show it.

    ``seen`` where the server hides no tokens, ``seen_free`` where it may hide a
    constant; ``fits`` and ``fits_free`` are how many hypotheses stay.
    ``refused`` are requests that the fault turns into an error.
    """

    mutator: str
    seen: bool
    seen_free: bool
    fits: int
    fits_free: int
    refused: int


def counted(
    prompts: ModelPrompts, renderer: Renderer, markers: Sequence[str], now: datetime
) -> tuple[list[Counted], dict[str, list[str]]]:
    """Return every fault of one template by its counts, and those that no counts could tell."""
    library, refused = _library(prompts, renderer, markers, now)
    if not library[OWN]:
        return [], {}  # the template refuses every request
    rows = []
    for mutator in MUTATORS:
        counts = library[mutator.name]
        strict, free = (consistent(counts, library, hidden=hidden) for hidden in (0, None))
        rows.append(
            Counted(
                mutator.name,
                strict.own(OWN) is False,
                free.own(OWN) is False,
                len(strict.fits),
                len(free.fits),
                refused[mutator.name],
            )
        )
    hidden = undetectable(library, OWN)
    return rows, {"equal": list(hidden.equal), "constant": sorted(hidden.constant)}


def _library(
    prompts: ModelPrompts, renderer: Renderer, markers: Sequence[str], now: datetime
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    library: dict[str, dict[str, int]] = {name: {} for name in (OWN, *(one.name for one in MUTATORS))}
    refused = {one.name: 0 for one in MUTATORS}
    for ask in (*tokenizer_asks(), *template_asks(markers)):
        prompt = prompts.prompt(as_rendered(chat_of(ask))[0], now)
        try:
            honest = prompts.encode(renderer.render(prompt), parse_special=True)
        except ModelError:
            continue
        library[OWN][ask.name] = len(honest)
        for one in MUTATORS:
            mutated = mutate_ids(one, prompt, renderer, prompts.encode)
            if mutated.ids is None:
                refused[one.name] += 1
            else:
                library[one.name][ask.name] = len(mutated.ids)
    return library, refused


def vocabularies_apart(codecs: Mapping[str, TokenCodec]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each vocabulary and those that its counts are consistent with, itself among them.

    Only the texts are counted, without a template.
    """
    texts = {ask.name: str(ask.messages[0]["content"]) for ask in tokenizer_asks()}
    library: dict[str, Counts] = {
        name: {ask: len(codec.encode(text)) for ask, text in texts.items()} for name, codec in codecs.items()
    }
    for name, counts in library.items():
        yield name, tuple(fit.name for fit in consistent(counts, library).fits)
